// Values without inputs: numbers, counting, and random numbers by position.
#include "base/philox.h"
#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

using ops::Op;

template <class T>
T number(const PrimitiveRun& call) {
  if (call.op() == Op::scalar) {
    if constexpr (std::is_same_v<T, double>) {
      return call.real_argument();
    } else {
      return call.integer_argument();
    }
  }
  const auto& number = call.attribute<ops::Number>();
  if constexpr (std::is_same_v<T, double>) {
    return number.real;
  } else {
    return number.integer;
  }
}

void count(const PrimitiveRun& call) {
  Array<std::int64_t> result(call.output_shape());
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] = static_cast<std::int64_t>(i);
  call.output(result);
}

}  // namespace

void run_source(const PrimitiveRun& call) {
  switch (call.op()) {
    case Op::leaf:
    case Op::empty: return;
    case Op::iota: return count(call);
    default: break;
  }
  by_kind(call.output_type(), [&]<class T>(T) { call.output(Array<T>(call.output_shape(), number<T>(call))); });
}

void run_random(const PrimitiveRun& call) {
  const std::uint64_t seed = call.attribute<ops::Seed>().value;
  const std::uint64_t offset = call.argument();
  if (call.op() == Op::random_bits) {
    Array<std::int64_t> result(call.output_shape());
    for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] = base::random_bits_at(seed, offset, i);
    return call.output(result);
  }
  const auto draw = call.op() == Op::uniform ? base::uniform_at : base::normal_at;
  Array<double> result(call.output_shape());
  for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] = draw(seed, offset, i);
  call.output(result);
}

}  // namespace russet::reference
