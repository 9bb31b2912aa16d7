// Views that became copies, and writes through views.
#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

/// Where the view starts, after checking that a run-time offset keeps it within `count` elements.
std::int64_t checked_start(const PrimitiveRun& call, const Shape& sizes, std::int64_t count) {
  const auto& view = call.attribute<ops::View>();
  const std::int64_t start = view.dynamic ? call.integer_argument() : view.offset;
  std::int64_t first = start;
  std::int64_t last = start;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    const std::int64_t reach = (sizes[axis] - 1) * view.strides[axis];
    (reach < 0 ? first : last) += reach;
  }
  if (numel(sizes) > 0 && (first < 0 || last >= count)) {
    throw IndexError(std::string(ops::row(call.op()).name) + ": elements " + std::to_string(first) + " to " +
                     std::to_string(last) + " of " + std::to_string(count));
  }
  return start;
}

template <class T>
void read_view(const PrimitiveRun& call) {
  const Array<T> x = call.input<T>(0);
  Array<T> result(call.output_shape());
  const std::int64_t start = checked_start(call, result.shape, numel(x.shape));
  walk(result.shape, call.attribute<ops::View>().strides,
       [&](std::int64_t position, std::int64_t at) { result[position] = x[start + at]; });
  call.output(result);
}

template <class T>
void write_view(const PrimitiveRun& call) {
  Array<T> result = call.input<T>(0);
  const Array<T> value = call.input<T>(1);
  const std::int64_t start = checked_start(call, value.shape, numel(result.shape));
  walk(value.shape, call.attribute<ops::View>().strides,
       [&](std::int64_t position, std::int64_t at) { result[start + at] = value[position]; });
  call.output(result);
}

}  // namespace

void run_movement(const PrimitiveRun& call) {
  by_kind(call.output_type(), [&]<class T>(T) {
    if (call.op() == ops::Op::strided) {
      read_view<T>(call);
    } else {
      write_view<T>(call);
    }
  });
}

}  // namespace russet::reference
