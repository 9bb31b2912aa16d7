#pragma once
// A naive evaluator of groups, one index at a time: floating numbers in float64, rounded after each instruction;
// integers in int64. The truth that kernels are compared with.
#include <russet/dtype.h>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/philox.h"
#include "compile/group.h"

namespace russet::test {

/// A number of any type: `real` for floating types, `integer` for the others.
struct Number {
  double real = 0;
  std::int64_t integer = 0;
};

inline Number load_number(DType type, const std::byte* memory) {
  return visit_dtype(type, [&]<class T>() -> Number {
    T value;
    std::memcpy(&value, memory, sizeof(T));
    return {convert_element<double>(value), std::is_floating_point_v<T> ? 0 : convert_element<std::int64_t>(value)};
  });
}

inline double round_real(DType type, double value) {
  if (type == DType::float64) return value;
  const auto single = static_cast<float>(value);
  if (type == DType::float16) return static_cast<double>(static_cast<float>(float16(single)));
  if (type == DType::bfloat16) return static_cast<double>(static_cast<float>(bfloat16(single)));
  return single;
}

inline std::int64_t round_integer(DType type, std::int64_t value) {
  switch (type) {
    case DType::boolean: return value != 0;
    case DType::uint8: return static_cast<std::uint8_t>(value);
    case DType::int8: return static_cast<std::int8_t>(value);
    case DType::int16: return static_cast<std::int16_t>(value);
    case DType::int32: return static_cast<std::int32_t>(value);
    default: return value;
  }
}

inline Number rounded(DType type, Number number) {
  if (is_floating(type)) return {round_real(type, number.real), 0};
  const std::int64_t integer = round_integer(type, number.integer);
  return {static_cast<double>(integer), integer};
}

inline void store_number(DType type, Number number, std::byte* memory) {
  visit_dtype(type, [&]<class T>() {
    T value;
    if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(number.integer);
    } else if constexpr (std::is_same_v<T, double>) {
      value = number.real;
    } else {
      value = T(static_cast<float>(number.real));
    }
    std::memcpy(memory, &value, sizeof(T));
  });
}

inline Number cast_number(DType from, DType to, Number x) {
  if (is_floating(to)) return rounded(to, is_floating(from) ? x : Number{static_cast<double>(x.integer), 0});
  if (to == DType::boolean) return {0, is_floating(from) ? x.real != 0 : x.integer != 0};
  if (!is_floating(from)) return rounded(to, x);
  const double limit = to == DType::int64 ? 0x1p63 : 0x1p31;
  const bool fits = x.real > (to == DType::int64 ? -limit : -limit - 1) && x.real < limit;
  const std::int64_t smallest = to == DType::int64 ? INT64_MIN : INT32_MIN;
  return rounded(to, {0, fits ? static_cast<std::int64_t>(x.real) : smallest});
}

inline double real_op(ops::Op op, double a, double b) {
  using ops::Op;
  switch (op) {
    case Op::neg: return -a;
    case Op::abs: return std::fabs(a);
    case Op::sign: return (a > 0) - (a < 0);
    case Op::floor: return std::floor(a);
    case Op::ceil: return std::ceil(a);
    case Op::round: return std::nearbyint(a);
    case Op::trunc: return std::trunc(a);
    case Op::exp: return std::exp(a);
    case Op::expm1: return std::expm1(a);
    case Op::log: return std::log(a);
    case Op::log1p: return std::log1p(a);
    case Op::sqrt: return std::sqrt(a);
    case Op::rsqrt: return 1 / std::sqrt(a);
    case Op::sin: return std::sin(a);
    case Op::cos: return std::cos(a);
    case Op::tan: return std::tan(a);
    case Op::asin: return std::asin(a);
    case Op::acos: return std::acos(a);
    case Op::atan: return std::atan(a);
    case Op::sinh: return std::sinh(a);
    case Op::cosh: return std::cosh(a);
    case Op::tanh: return std::tanh(a);
    case Op::erf: return std::erf(a);
    case Op::ndtr: return std::erfc(-a * std::sqrt(0.5)) / 2;
    case Op::normal_density: return std::exp(-a * a / 2) * 0.3989422804014327;
    case Op::sigmoid: return 1 / (1 + std::exp(-a));
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return a * b;
    case Op::div: return a / b;
    case Op::floor_divide: {
      if (b == 0) return a / b;
      const double remainder = std::fmod(a, b);
      const double quotient = (a - remainder) / b;
      return std::round(remainder != 0 && (b < 0) != (remainder < 0) ? quotient - 1 : quotient);
    }
    case Op::fmod: return std::fmod(a, b);
    case Op::pow: return std::pow(a, b);
    case Op::atan2: return std::atan2(a, b);
    case Op::maximum: return a != a || b != b ? NAN : a > b || (a == b && std::signbit(b)) ? a : b;
    case Op::minimum: return a != a || b != b ? NAN : a < b || (a == b && std::signbit(a)) ? a : b;
    default: throw std::logic_error("no such operator on floating numbers");
  }
}

inline std::int64_t integer_op(ops::Op op, std::int64_t a, std::int64_t b, DType type) {
  using ops::Op;
  const auto ua = static_cast<std::uint64_t>(a);
  const auto ub = static_cast<std::uint64_t>(b);
  const std::int64_t width = type == DType::int64 ? 64 : 32;
  switch (op) {
    case Op::neg: return static_cast<std::int64_t>(0 - ua);
    case Op::abs: return a < 0 ? static_cast<std::int64_t>(0 - ua) : a;
    case Op::sign: return (a > 0) - (a < 0);
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::trunc: return a;
    case Op::bitwise_not: return type == DType::boolean ? a == 0 : ~a;
    case Op::add: return static_cast<std::int64_t>(ua + ub);
    case Op::sub: return static_cast<std::int64_t>(ua - ub);
    case Op::mul: return static_cast<std::int64_t>(ua * ub);
    case Op::floor_divide:
      if (b == -1) return static_cast<std::int64_t>(0 - ua);
      return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
    case Op::fmod: return b == -1 ? 0 : a % b;
    case Op::pow: {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 != 0 ? -1 : 1) : 0;
      std::uint64_t result = 1;
      for (std::int64_t i = 0; i < b; ++i) result *= ua;
      return static_cast<std::int64_t>(result);
    }
    case Op::maximum: return std::max(a, b);
    case Op::minimum: return std::min(a, b);
    case Op::bitwise_and: return a & b;
    case Op::bitwise_or: return a | b;
    case Op::bitwise_xor: return a ^ b;
    case Op::shift_left: return b < 0 || b >= width ? 0 : static_cast<std::int64_t>(ua << b);
    case Op::shift_right: return a >> (b < 0 || b >= width ? width - 1 : b);
    default: throw std::logic_error("no such operator on integers");
  }
}

inline bool compared(ops::Op op, auto a, auto b) {
  if (op == ops::Op::eq) return a == b;
  if (op == ops::Op::ne) return a != b;
  return op == ops::Op::lt ? a < b : a <= b;
}

/// Runs `group` on memory.
class GroupReference {
 public:
  GroupReference(const compile::Group& group, std::byte* const* slots, const std::uint64_t* arguments)
      : group_(group), slots_(slots), arguments_(arguments) {}

  void run() {
    const std::int64_t points = numel(group_.space);
    values_.resize(group_.code.size());
    for (std::size_t i = 0; i < group_.code.size(); ++i) {
      const compile::Instruction& instruction = group_.code[i];
      extent_ = instruction.extent;
      if (instruction.kind == compile::Instruction::Kind::reduce) {
        values_[i] = reduce(instruction);
        continue;
      }
      const bool reduced = extent_ != compile::Extent::full;
      const std::int64_t count = reduced ? kept_points() : points;
      values_[i].resize(static_cast<std::size_t>(count));
      for (std::int64_t point = 0; point < count; ++point) {
        values_[i][static_cast<std::size_t>(point)] = evaluate(instruction, point, reduced);
      }
    }
  }

 private:
  using Kind = compile::Instruction::Kind;

  /// Whether values of the extent, which is not full, have one for all places along the axis.
  bool is_reduced(int axis, compile::Extent extent) const {
    if (group_.kind == compile::Group::Kind::elementwise) return false;
    const bool along_rows = group_.kind == compile::Group::Kind::row && extent != compile::Extent::column;
    return (axis >= group_.split) == along_rows;
  }
  bool is_reduced(int axis) const { return is_reduced(axis, extent_); }
  std::int64_t kept_points() const {
    std::int64_t count = 1;
    for (int axis = 0; axis < group_.space.rank(); ++axis) count *= is_reduced(axis) ? 1 : group_.space[axis];
    return count;
  }
  /// The index of a point: of the whole space, or of the kept axes.
  Dims index_of(std::int64_t point, bool reduced) const {
    Dims index = Dims::filled(group_.space.rank(), 0);
    for (int axis = group_.space.rank() - 1; axis >= 0; --axis) {
      if (reduced && is_reduced(axis)) continue;
      index[axis] = point % group_.space[axis];
      point /= group_.space[axis];
    }
    return index;
  }
  /// Position of an index among the kept axes (or the reduced ones).
  std::int64_t position(const Dims& index, bool among_reduced, compile::Extent extent) const {
    std::int64_t result = 0;
    for (int axis = 0; axis < group_.space.rank(); ++axis) {
      if (is_reduced(axis, extent) == among_reduced) result = result * group_.space[axis] + index[axis];
    }
    return result;
  }
  std::int64_t address(const compile::Access& access, const Dims& index) const {
    std::int64_t result = access.offset;
    if (access.offset_argument >= 0) result += static_cast<std::int64_t>(arguments_[access.offset_argument]);
    for (int axis = 0; axis < index.rank(); ++axis) result += index[axis] * access.strides[axis];
    return result;
  }
  std::byte* element(const compile::Access& access, const Dims& index) const {
    return slots_[access.slot] + address(access, index) * static_cast<std::int64_t>(size_of(access.dtype));
  }
  /// Of four neighbours in a byte.
  Number packed_element(const compile::Access& access, const Dims& index) const {
    const std::int64_t at = address(access, index);
    return {0, std::to_integer<int>(slots_[access.slot][at / 4] >> at % 4) & 1};
  }
  void store_packed(const compile::Access& access, const Dims& index, const Number& value) const {
    const std::int64_t at = address(access, index);
    const std::byte bit = std::byte{1} << at % 4;
    std::byte& four = slots_[access.slot][at / 4];
    // The byte's other bits are zeros.
    four = ((value.integer != 0 ? four | bit : four & ~bit)) & std::byte{15};
  }
  Number input(std::int16_t id, const Dims& index, std::int64_t point, bool reduced) const {
    const compile::Instruction& source = group_.code[static_cast<std::size_t>(id)];
    if (source.kind == Kind::scalar || source.kind == Kind::constant) return evaluate(source, 0, true);
    const auto& values = values_[static_cast<std::size_t>(id)];
    if (reduced || source.extent == compile::Extent::full) return values[static_cast<std::size_t>(point)];
    return values[static_cast<std::size_t>(position(index, false, source.extent))];
  }

  Number evaluate(const compile::Instruction& instruction, std::int64_t point, bool reduced) const {
    const Dims index = index_of(point, reduced);
    const auto in = [&](int i) {
      return input(instruction.inputs[static_cast<std::size_t>(i)], index, point, reduced);
    };
    const auto access = [&]() -> const compile::Access& {
      return group_.accesses[static_cast<std::size_t>(instruction.access)];
    };
    switch (instruction.kind) {
      case Kind::load:
        if (access().packed) return packed_element(access(), index);
        return load_number(access().dtype, element(access(), index));
      case Kind::store: {
        const Number value = in(0);
        if (access().packed) {
          store_packed(access(), index, value);
        } else {
          store_number(access().dtype, value, element(access(), index));
        }
        return value;
      }
      case Kind::index: {
        const std::int64_t at = address(access(), index);
        return {static_cast<double>(at), at};
      }
      case Kind::scalar: {
        const std::uint64_t bits = arguments_[instruction.argument];
        if (is_floating(instruction.dtype)) return rounded(instruction.dtype, {std::bit_cast<double>(bits), 0});
        return rounded(instruction.dtype, {0, static_cast<std::int64_t>(bits)});
      }
      case Kind::constant: return rounded(instruction.dtype, {instruction.number.real, instruction.number.integer});
      case Kind::random: return random(instruction, in(0).integer);
      default: break;
    }
    return compute(instruction, in);
  }

  Number random(const compile::Instruction& instruction, std::int64_t where) const {
    const std::uint64_t offset = instruction.argument < 0 ? 0 : arguments_[instruction.argument];
    const auto at = static_cast<std::uint64_t>(where);
    if (instruction.op == ops::Op::uniform) {
      return rounded(instruction.dtype, {base::uniform_at(instruction.seed, offset, at), 0});
    }
    if (instruction.op == ops::Op::normal) {
      return rounded(instruction.dtype, {base::normal_at(instruction.seed, offset, at), 0});
    }
    return {0, base::random_bits_at(instruction.seed, offset, at)};
  }

  template <class In>
  Number compute(const compile::Instruction& instruction, In&& in) const {
    using ops::Op;
    const auto type_of = [&](int i) {
      return group_.code[static_cast<std::size_t>(instruction.inputs[static_cast<std::size_t>(i)])].dtype;
    };
    const Op op = instruction.op;
    if (op == Op::cast) return cast_number(type_of(0), instruction.dtype, in(0));
    if (op == Op::where) {
      const Number condition = in(0);
      return (is_floating(type_of(0)) ? condition.real != 0 : condition.integer != 0) ? in(1) : in(2);
    }
    const Number a = in(0);
    const Number b = instruction.inputs[1] >= 0 ? in(1) : Number{};
    const bool real = is_floating(type_of(0));
    if (op >= Op::eq && op <= Op::le) {
      return {0, real ? compared(op, a.real, b.real) : compared(op, a.integer, b.integer)};
    }
    if (real) return rounded(instruction.dtype, {real_op(op, a.real, b.real), 0});
    return rounded(instruction.dtype, {0, integer_op(op, a.integer, b.integer, type_of(0))});
  }

  std::vector<Number> reduce(const compile::Instruction& instruction) {
    using ops::Op;
    const DType from = group_.code[static_cast<std::size_t>(instruction.inputs[0])].dtype;
    const bool real = is_floating(from);
    const Op op = instruction.op;
    struct Running {
      bool any = false;
      long double real = 0;
      std::int64_t integer = 0;
      std::int64_t where = 0;
    };
    std::vector<Running> running(static_cast<std::size_t>(kept_points()));
    for (std::int64_t point = 0; point < numel(group_.space); ++point) {
      const Dims index = index_of(point, false);
      const Number x = input(instruction.inputs[0], index, point, false);
      Running& r = running[static_cast<std::size_t>(position(index, false, extent_))];
      const std::int64_t where = position(index, true, extent_);
      if (op == Op::sum) {
        r.real += x.real;
        r.integer =
            static_cast<std::int64_t>(static_cast<std::uint64_t>(r.integer) + static_cast<std::uint64_t>(x.integer));
      } else if (op == Op::prod) {
        r.real = r.any ? r.real * x.real : static_cast<long double>(x.real);
        r.integer = r.any ? static_cast<std::int64_t>(static_cast<std::uint64_t>(r.integer) *
                                                      static_cast<std::uint64_t>(x.integer))
                          : x.integer;
      } else {
        const bool largest = op == Op::amax || op == Op::argmax;
        // Of equal numbers the first one is found, but of zeros -0 is the smaller one.
        const bool zero = (op == Op::amax && std::signbit(r.real)) || (op == Op::amin && std::signbit(x.real));
        const bool beats = real ? (largest ? x.real > r.real : x.real < r.real) ||
                                      (x.real != x.real && r.real == r.real) || (x.real == r.real && zero)
                                : (largest ? x.integer > r.integer : x.integer < r.integer);
        if (!r.any || beats) r = {true, x.real, x.integer, where};
      }
      r.any = true;
    }
    std::vector<Number> results;
    for (const Running& r : running) {
      if (op == Op::argmax || op == Op::argmin) {
        results.push_back({static_cast<double>(r.where), r.where});
      } else {
        const bool one = op == Op::prod && !r.any;
        results.push_back(rounded(instruction.dtype, {one ? 1.0 : static_cast<double>(r.real), one ? 1 : r.integer}));
      }
    }
    return results;
  }

  const compile::Group& group_;
  std::byte* const* slots_;
  const std::uint64_t* arguments_;
  std::vector<std::vector<Number>> values_;
  compile::Extent extent_ = compile::Extent::full;  // of the instruction that is evaluated
};

}  // namespace russet::test
