#pragma once
// PrimitiveRun: what one run of a primitive sees, its operands as dense arrays.
#include <russet/error.h>
#include <cmath>

#include "compile/step.h"
#include "device/reference/array.h"
#include "ops/table.h"

namespace russet::reference {

class PrimitiveRun {
 public:
  PrimitiveRun(const compile::Primitive& step, const compile::Bindings& bindings) : step_(step), bindings_(bindings) {}

  ops::Op op() const { return step_.op; }
  DType input_type(int i) const { return operand(i).access.dtype; }
  DType output_type() const { return step_.output.access.dtype; }
  const Shape& input_shape(int i) const { return operand(i).sizes; }
  const Shape& output_shape() const { return step_.output.sizes; }

  template <class Attribute>
  const Attribute& attribute() const {
    if (const auto* found = std::get_if<Attribute>(&step_.attributes)) return *found;
    throw InternalError(std::string(ops::row(step_.op).name) + ": the step lacks its attributes");
  }

  /// The run-time argument, 0 if there is none.
  std::uint64_t argument() const {
    return step_.argument < 0 ? 0 : bindings_.arguments[static_cast<std::size_t>(step_.argument)];
  }
  double real_argument() const { return std::bit_cast<double>(argument()); }
  std::int64_t integer_argument() const { return static_cast<std::int64_t>(argument()); }

  /// Input i in its own sizes.
  template <class T>
  Array<T> input(int i) const {
    return load<T>(operand(i), operand(i).sizes, operand(i).access.strides);
  }

  /// Input i broadcast to the output's sizes.
  template <class T>
  Array<T> broadcast_input(int i) const {
    return load<T>(operand(i), output_shape(), broadcast_strides(operand(i)));
  }

  template <class T>
  void output(const Array<T>& result) const {
    visit_dtype(output_type(), [&]<class Element>() {
      std::byte* base = address(step_.output.access);
      walk(output_shape(), step_.output.access.strides, [&](std::int64_t position, std::int64_t at) {
        store_element<Element>(base + at * static_cast<std::int64_t>(sizeof(Element)), result[position]);
      });
    });
  }

 private:
  const compile::Operand& operand(int i) const { return step_.inputs[static_cast<std::size_t>(i)]; }

  std::byte* address(const compile::Access& access) const {
    std::int64_t offset = access.offset;
    if (access.offset_argument >= 0) {
      offset += static_cast<std::int64_t>(bindings_.arguments[static_cast<std::size_t>(access.offset_argument)]);
    }
    return bindings_.slots[access.slot] + offset * static_cast<std::int64_t>(size_of(access.dtype));
  }

  template <class T>
  Array<T> load(const compile::Operand& operand, const Shape& sizes, const Strides& strides) const {
    Array<T> result(sizes);
    visit_dtype(operand.access.dtype, [&]<class Element>() {
      const std::byte* base = address(operand.access);
      walk(sizes, strides, [&](std::int64_t position, std::int64_t at) {
        result[position] = load_element<T, Element>(base + at * static_cast<std::int64_t>(sizeof(Element)));
      });
    });
    return result;
  }

  // Leading axes that the operand lacks, and its axes of size 1, repeat their element.
  Strides broadcast_strides(const compile::Operand& operand) const {
    const Shape& sizes = output_shape();
    const Strides& own = operand.access.strides;
    Strides strides = Strides::filled(sizes.rank(), 0);
    const int missing = sizes.rank() - own.rank();
    for (int axis = 0; axis < own.rank(); ++axis) {
      const bool repeats = operand.sizes.rank() == own.rank() && operand.sizes[axis] == 1 && sizes[missing + axis] != 1;
      strides[missing + axis] = repeats ? 0 : own[axis];
    }
    return strides;
  }

  const compile::Primitive& step_;
  const compile::Bindings& bindings_;
};

/// Calls `compute` with a double or an int64, by the kind of `type`.
template <class Compute>
void by_kind(DType type, Compute&& compute) {
  if (is_floating(type)) {
    compute(double{});
  } else {
    compute(std::int64_t{});
  }
}

// Sums and products of integers wrap around.
inline double plus(double a, double b) { return a + b; }
inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
inline double times(double a, double b) { return a * b; }
inline std::int64_t times(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
inline bool is_nan(double value) { return std::isnan(value); }
inline bool is_nan(std::int64_t) { return false; }
/// Whether `a` comes after `b` when NaN counts as larger than all.
template <class T>
bool greater(T a, T b) {
  return a > b || (is_nan(a) && !is_nan(b));
}
/// Whether `a` comes before `b` when NaN counts as smaller than all.
template <class T>
bool less(T a, T b) {
  return a < b || (is_nan(a) && !is_nan(b));
}
/// The larger and the smaller of two numbers, or NaN; -0 is smaller than 0.
template <class T>
T larger(T a, T b) {
  return is_nan(a) || a > b || (a == b && std::signbit(b)) ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return is_nan(a) || a < b || (a == b && std::signbit(a)) ? a : b;
}

}  // namespace russet::reference
