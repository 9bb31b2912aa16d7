// Values without inputs: numbers, counting, and random numbers by position.
#include "base/philox.h"
#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

using ops::Op;

template <class T>
T number(const PrimitiveRun& primitive) {
  if (primitive.op() == Op::scalar) {
    if constexpr (std::is_same_v<T, double>) {
      return primitive.real_argument();
    } else {
      return primitive.integer_argument();
    }
  }
  const auto& number = primitive.attribute<ops::Number>();
  if constexpr (std::is_same_v<T, double>) {
    return number.real;
  } else {
    return number.integer;
  }
}

void count(const PrimitiveRun& primitive) {
  Array<std::int64_t> result(primitive.output_shape());
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] = static_cast<std::int64_t>(i);
  primitive.output(result);
}

}  // namespace

void run_source(const PrimitiveRun& primitive) {
  switch (primitive.op()) {
    case Op::leaf:
    case Op::empty: return;
    case Op::iota: return count(primitive);
    default: break;
  }
  by_kind(primitive.output_type(),
          [&]<class T>(T) { primitive.output(Array<T>(primitive.output_shape(), number<T>(primitive))); });
}

void run_random(const PrimitiveRun& primitive) {
  const auto& [seed, first] = primitive.attribute<ops::Seed>();
  const auto from = static_cast<std::uint64_t>(first);
  const std::uint64_t offset = primitive.argument();
  if (primitive.op() == Op::random_bits) {
    Array<std::int64_t> result(primitive.output_shape());
    for (std::size_t i = 0; i < result.values.size(); ++i)
      result.values[i] = base::random_bits_at(seed, offset, from + i);
    return primitive.output(result);
  }
  const auto draw = primitive.op() == Op::uniform ? base::uniform_at : base::normal_at;
  Array<double> result(primitive.output_shape());
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] = draw(seed, offset, from + i);
  primitive.output(result);
}

}  // namespace russet::reference
