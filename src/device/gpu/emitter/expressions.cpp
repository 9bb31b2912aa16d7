#include "device/gpu/emitter/expressions.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <array>
#include <iterator>

#include "ops/table.h"

namespace russet::gpu {
namespace {

using ops::Op;

struct Expression {
  Op op;
  std::string_view real;     // on float; empty if the operator does not take it
  std::string_view integer;  // on int and long
  bool exact = false;        // gives values of the inputs' type as they are
};

constexpr std::string_view none;

constexpr Expression expressions[] = {
    {Op::neg, "-{0}", "wrap_neg({0})"},
    {Op::abs, "fabs({0})", "absolute({0})"},
    {Op::sign, "sign_of({0})", "sign_of({0})", true},
    {Op::floor, "floor({0})", "{0}", true},
    {Op::ceil, "ceil({0})", "{0}", true},
    {Op::round, "rint({0})", "{0}", true},
    {Op::trunc, "trunc({0})", "{0}", true},
    {Op::exp, "precise::exp({0})", none},
    {Op::expm1, "exp_minus_1({0})", none},
    {Op::log, "precise::log({0})", none},
    {Op::log1p, "log_plus_1({0})", none},
    {Op::sqrt, "precise::sqrt({0})", none},
    {Op::rsqrt, "precise::rsqrt({0})", none},
    {Op::sin, "precise::sin({0})", none},
    {Op::cos, "precise::cos({0})", none},
    {Op::tan, "precise::tan({0})", none},
    {Op::asin, "precise::asin({0})", none},
    {Op::acos, "precise::acos({0})", none},
    {Op::atan, "precise::atan({0})", none},
    {Op::sinh, "precise::sinh({0})", none},
    {Op::cosh, "precise::cosh({0})", none},
    {Op::tanh, "precise::tanh({0})", none},
    {Op::erf, "error_function({0})", none},
    {Op::ndtr, "normal_distribution({0})", none},
    {Op::normal_density, "normal_density({0})", none},
    {Op::sigmoid, "logistic({0})", none},
    {Op::bitwise_not, none, "~{0}"},
    {Op::cast, "{0}", "{0}"},  // see cast()
    {Op::add, "{0} + {1}", "wrap_add({0}, {1})"},
    {Op::sub, "{0} - {1}", "wrap_sub({0}, {1})"},
    {Op::mul, "{0} * {1}", "wrap_mul({0}, {1})"},
    {Op::div, "{0} / {1}", none},
    {Op::floor_divide, "floor_divide({0}, {1})", "floor_divide({0}, {1})"},
    {Op::fmod, "remainder_of({0}, {1})", "remainder_of({0}, {1})", true},
    {Op::pow, "precise::pow({0}, {1})", "power({0}, {1})"},
    {Op::atan2, "precise::atan2({0}, {1})", none},
    {Op::maximum, "larger({0}, {1})", "larger({0}, {1})", true},
    {Op::minimum, "smaller({0}, {1})", "smaller({0}, {1})", true},
    {Op::eq, "int({0} == {1})", "int({0} == {1})", true},
    {Op::ne, "int({0} != {1})", "int({0} != {1})", true},
    {Op::lt, "int({0} < {1})", "int({0} < {1})", true},
    {Op::le, "int({0} <= {1})", "int({0} <= {1})", true},
    {Op::bitwise_and, none, "{0} & {1}", true},
    {Op::bitwise_or, none, "{0} | {1}", true},
    {Op::bitwise_xor, none, "{0} ^ {1}", true},
    {Op::shift_left, none, "shift_left({0}, {1})"},
    {Op::shift_right, none, "shift_right({0}, {1})", true},
    {Op::where, "{0} != 0 ? {1} : {2}", "{0} != 0 ? {1} : {2}", true},
};

constexpr int first_op = static_cast<int>(Op::neg);
constexpr int last_op = static_cast<int>(Op::where);

constexpr bool lists_each_elementwise_op() {
  constexpr std::size_t count = last_op - first_op + 1;
  if (std::size(expressions) != count) return false;
  for (int i = first_op; i <= last_op; ++i) {
    if (static_cast<int>(expressions[i - first_op].op) != i) return false;
  }
  return true;
}
static_assert(lists_each_elementwise_op(), "the rows are the elementwise operators, each once and in their order");

struct TypeText {
  std::string_view stored;
  std::string_view computed;
};

constexpr TypeText text_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return {"uchar", "int"};
    case DType::uint8: return {"uchar", "int"};
    case DType::int8: return {"char", "int"};
    case DType::int16: return {"short", "int"};
    case DType::int32: return {"int", "int"};
    case DType::int64: return {"long", "long"};
    case DType::float16: return {"half", "float"};
    case DType::bfloat16: return {"bfloat", "float"};
    case DType::float32: return {"float", "float"};
    case DType::float64: break;
  }
  return {};
}

/// From float; narrow types take the low bits.
std::string integer_from_real(DType to, std::string_view value) {
  if (to == DType::boolean) return fmt::format("int({} != 0.0f)", value);
  if (to == DType::int64) return fmt::format("to_long({})", value);
  return rounded(to, fmt::format("to_int({})", value));
}

}  // namespace

bool has_type(DType dtype) { return !text_of(dtype).stored.empty(); }
std::string_view stored_type(DType dtype) { return text_of(dtype).stored; }
std::string_view register_type(DType dtype) { return text_of(dtype).computed; }

std::string loaded(DType dtype, std::string_view value) {
  const TypeText text = text_of(dtype);
  return text.stored == text.computed ? std::string(value) : fmt::format("{}({})", text.computed, value);
}

std::string stored(DType dtype, std::string_view value) {
  const TypeText text = text_of(dtype);
  return text.stored == text.computed ? std::string(value) : fmt::format("{}({})", text.stored, value);
}

std::string rounded(DType dtype, std::string_view value) {
  if (dtype == DType::boolean) return fmt::format("int(({}) != 0)", value);
  if (dtype == DType::bfloat16) return fmt::format("rounded_bfloat({})", value);
  const TypeText text = text_of(dtype);
  return text.stored == text.computed ? std::string(value)
                                      : fmt::format("{}({}({}))", text.computed, text.stored, value);
}

std::string cast(DType from, DType to, std::string_view value) {
  if (from == to) return std::string(value);
  if (is_floating(from)) return is_floating(to) ? rounded(to, value) : integer_from_real(to, value);
  if (is_floating(to)) return rounded(to, fmt::format("float({})", value));
  if (to == DType::boolean) return fmt::format("int({} != 0)", value);
  return rounded(to, fmt::format("{}({})", register_type(to), value));
}

std::string expression(Op op, DType inputs, std::string_view a, std::string_view b, std::string_view c) {
  const Expression& row = expressions[static_cast<int>(op) - first_op];
  if (op == Op::bitwise_not && inputs == DType::boolean) return fmt::format("{} ^ 1", a);
  const std::string_view format = is_floating(inputs) ? row.real : row.integer;
  if (format.empty()) throw TypeError(fmt::format("{} does not take {}", ops::row(op).name, name_of(inputs)));
  return fmt::format(fmt::runtime(format), a, b, c);
}

bool is_exact(Op op, DType dtype) {
  if (op == Op::neg || op == Op::abs) return is_floating(dtype);
  return expressions[static_cast<int>(op) - first_op].exact;
}

}  // namespace russet::gpu
