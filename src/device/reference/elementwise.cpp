// Elementwise primitives: an expression each, over double for floating inputs and over int64 for the others.
#include <numbers>

#include "device/reference/kernels.h"
#include "ops/failures.h"

namespace russet::reference {
namespace {

using ops::Op;
using Int = std::int64_t;
using UInt = std::uint64_t;

/// An expression over doubles, one over int64, or both; one to three inputs.
struct Expression {
  using Real1 = double (*)(double);
  using Real2 = double (*)(double, double);
  using Real3 = double (*)(double, double, double);
  using Int1 = Int (*)(Int);
  using Int2 = Int (*)(Int, Int);
  using Int3 = Int (*)(Int, Int, Int);

  constexpr Expression(Op op, Real1 real, Int1 integer = nullptr) : op(op), real1(real), int1(integer) {}
  constexpr Expression(Op op, Int1 integer) : op(op), int1(integer) {}
  constexpr Expression(Op op, Real2 real, Int2 integer = nullptr) : op(op), real2(real), int2(integer) {}
  constexpr Expression(Op op, Int2 integer) : op(op), int2(integer) {}
  constexpr Expression(Op op, Real3 real, Int3 integer) : op(op), real3(real), int3(integer) {}

  Op op;
  Real1 real1 = nullptr;
  Real2 real2 = nullptr;
  Real3 real3 = nullptr;
  Int1 int1 = nullptr;
  Int2 int2 = nullptr;
  Int3 int3 = nullptr;
};

constexpr Int wrap(UInt value) { return static_cast<Int>(value); }
constexpr UInt bits(Int value) { return static_cast<UInt>(value); }
constexpr Int same(Int x) { return x; }

double floor_divide(double a, double b) {
  if (b == 0) return a / b;
  const double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  // The quotient is an integer up to rounding.
  const double below = std::floor(quotient);
  return quotient - below > 0.5 ? below + 1 : below;
}

Int floor_divide(Int a, Int b) {
  if (b == 0) ops::throw_division_by_zero("floor_divide");
  if (b == -1) return wrap(UInt{0} - bits(a));
  const Int quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Int remainder(Int a, Int b) {
  if (b == 0) ops::throw_division_by_zero("fmod");
  return b == -1 ? 0 : a % b;
}

Int power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  Int result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = times(result, base);
    base = times(base, base);
  }
  return result;
}

Int shift_left(Int a, Int count) { return count < 0 || count > 63 ? 0 : wrap(bits(a) << count); }
Int shift_right(Int a, Int count) { return a >> (count < 0 || count > 63 ? 63 : count); }

constexpr Expression expressions[] = {
    {Op::neg, [](double x) { return -x; }, [](Int x) { return wrap(UInt{0} - bits(x)); }},
    {Op::abs, [](double x) { return std::fabs(x); }, [](Int x) { return x < 0 ? wrap(UInt{0} - bits(x)) : x; }},
    {Op::sign, [](double x) { return static_cast<double>((x > 0) - (x < 0)); },
     [](Int x) { return Int{x > 0} - Int{x < 0}; }},
    {Op::floor, [](double x) { return std::floor(x); }, same},
    {Op::ceil, [](double x) { return std::ceil(x); }, same},
    {Op::round, [](double x) { return std::nearbyint(x); }, same},
    {Op::trunc, [](double x) { return std::trunc(x); }, same},
    {Op::exp, [](double x) { return std::exp(x); }},
    {Op::expm1, [](double x) { return std::expm1(x); }},
    {Op::log, [](double x) { return std::log(x); }},
    {Op::log1p, [](double x) { return std::log1p(x); }},
    {Op::sqrt, [](double x) { return std::sqrt(x); }},
    {Op::rsqrt, [](double x) { return 1 / std::sqrt(x); }},
    {Op::sin, [](double x) { return std::sin(x); }},
    {Op::cos, [](double x) { return std::cos(x); }},
    {Op::tan, [](double x) { return std::tan(x); }},
    {Op::asin, [](double x) { return std::asin(x); }},
    {Op::acos, [](double x) { return std::acos(x); }},
    {Op::atan, [](double x) { return std::atan(x); }},
    {Op::sinh, [](double x) { return std::sinh(x); }},
    {Op::cosh, [](double x) { return std::cosh(x); }},
    {Op::tanh, [](double x) { return std::tanh(x); }},
    {Op::erf, [](double x) { return std::erf(x); }},
    {Op::ndtr, [](double x) { return std::erfc(-x * std::numbers::sqrt2 / 2) / 2; }},
    {Op::normal_density,
     [](double x) { return std::exp(x * x * -0.5) * std::numbers::inv_sqrtpi / std::numbers::sqrt2; }},
    {Op::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {Op::bitwise_not, [](Int x) { return ~x; }},
    {Op::cast, [](double x) { return x; }, same},
    {Op::add, [](double a, double b) { return a + b; }, [](Int a, Int b) { return plus(a, b); }},
    {Op::sub, [](double a, double b) { return a - b; }, [](Int a, Int b) { return wrap(bits(a) - bits(b)); }},
    {Op::mul, [](double a, double b) { return a * b; }, [](Int a, Int b) { return times(a, b); }},
    {Op::div, [](double a, double b) { return a / b; }},
    {Op::floor_divide, floor_divide, floor_divide},
    {Op::fmod, [](double a, double b) { return std::fmod(a, b); }, remainder},
    {Op::pow, [](double a, double b) { return std::pow(a, b); }, power},
    {Op::atan2, [](double a, double b) { return std::atan2(a, b); }},
    {Op::maximum, larger<double>, larger<Int>},
    {Op::minimum, smaller<double>, smaller<Int>},
    {Op::eq, [](double a, double b) { return a == b ? 1.0 : 0.0; }, [](Int a, Int b) { return Int{a == b}; }},
    {Op::ne, [](double a, double b) { return a != b ? 1.0 : 0.0; }, [](Int a, Int b) { return Int{a != b}; }},
    {Op::lt, [](double a, double b) { return a < b ? 1.0 : 0.0; }, [](Int a, Int b) { return Int{a < b}; }},
    {Op::le, [](double a, double b) { return a <= b ? 1.0 : 0.0; }, [](Int a, Int b) { return Int{a <= b}; }},
    {Op::bitwise_and, [](Int a, Int b) { return a & b; }},
    {Op::bitwise_or, [](Int a, Int b) { return a | b; }},
    {Op::bitwise_xor, [](Int a, Int b) { return a ^ b; }},
    {Op::shift_left, shift_left},
    {Op::shift_right, shift_right},
    {Op::where, [](double condition, double a, double b) { return condition != 0 ? a : b; },
     [](Int condition, Int a, Int b) { return condition != 0 ? a : b; }},
};

constexpr int first_op = static_cast<int>(Op::neg);
constexpr int last_op = static_cast<int>(Op::where);

constexpr bool lists_each_elementwise_op() {
  if (std::size(expressions) != static_cast<std::size_t>(last_op - first_op + 1)) return false;
  for (int i = first_op; i <= last_op; ++i) {
    if (static_cast<int>(expressions[i - first_op].op) != i) return false;
  }
  return true;
}
static_assert(lists_each_elementwise_op());

template <class T, class Function>
void map1(const PrimitiveRun& primitive, Function function) {
  Array<T> x = primitive.broadcast_input<T>(0);
  for (T& value : x.values) value = function(value);
  primitive.output(x);
}

template <class T, class Function>
void map2(const PrimitiveRun& primitive, Function function) {
  Array<T> a = primitive.broadcast_input<T>(0);
  const Array<T> b = primitive.broadcast_input<T>(1);
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = function(a.values[i], b.values[i]);
  primitive.output(a);
}

template <class T, class Function>
void map3(const PrimitiveRun& primitive, Function function) {
  Array<T> a = primitive.broadcast_input<T>(0);
  const Array<T> b = primitive.broadcast_input<T>(1);
  const Array<T> c = primitive.broadcast_input<T>(2);
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = function(a.values[i], b.values[i], c.values[i]);
  primitive.output(a);
}

}  // namespace

void run_elementwise(const PrimitiveRun& primitive) {
  const Expression& expression = expressions[static_cast<int>(primitive.op()) - first_op];
  const int inputs = ops::row(primitive.op()).inputs;
  const DType type = primitive.input_type(inputs - 1);
  if (primitive.op() == Op::bitwise_not && type == DType::boolean) {
    return map1<Int>(primitive, [](Int x) { return x ^ 1; });
  }
  if (is_floating(type)) {
    if (expression.real1 != nullptr) return map1<double>(primitive, expression.real1);
    if (expression.real2 != nullptr) return map2<double>(primitive, expression.real2);
    if (expression.real3 != nullptr) return map3<double>(primitive, expression.real3);
  } else {
    if (expression.int1 != nullptr) return map1<Int>(primitive, expression.int1);
    if (expression.int2 != nullptr) return map2<Int>(primitive, expression.int2);
    if (expression.int3 != nullptr) return map3<Int>(primitive, expression.int3);
  }
  throw TypeError(std::string(ops::row(primitive.op()).name) + " does not take " + std::string(name_of(type)));
}

}  // namespace russet::reference
