// Views that became copies, and writes through views.
#include "device/reference/kernels.h"

namespace russet::reference {
namespace {

/// Where the view starts, after checking that a run-time offset keeps it within `count` elements.
std::int64_t checked_start(const PrimitiveRun& primitive, const Shape& sizes, std::int64_t count) {
  const auto& view = primitive.attribute<ops::View>();
  const std::int64_t start = view.dynamic ? primitive.integer_argument() : view.offset;
  std::int64_t first = start;
  std::int64_t last = start;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    const std::int64_t reach = (sizes[axis] - 1) * view.strides[axis];
    (reach < 0 ? first : last) += reach;
  }
  if (numel(sizes) > 0 && (first < 0 || last >= count)) {
    throw IndexError(std::string(ops::row(primitive.op()).name) + ": elements " + std::to_string(first) + " to " +
                     std::to_string(last) + " of " + std::to_string(count));
  }
  return start;
}

template <class T>
void read_view(const PrimitiveRun& primitive) {
  const Array<T> x = primitive.input<T>(0);
  Array<T> result(primitive.output_shape());
  const std::int64_t start = checked_start(primitive, result.shape, numel(x.shape));
  walk(result.shape, primitive.attribute<ops::View>().strides,
       [&](std::int64_t position, std::int64_t at) { result[position] = x[start + at]; });
  primitive.output(result);
}

template <class T>
void write_view(const PrimitiveRun& primitive) {
  Array<T> result = primitive.input<T>(0);
  const Array<T> value = primitive.input<T>(1);
  const std::int64_t start = checked_start(primitive, value.shape, numel(result.shape));
  walk(value.shape, primitive.attribute<ops::View>().strides,
       [&](std::int64_t position, std::int64_t at) { result[start + at] = value[position]; });
  primitive.output(result);
}

}  // namespace

void run_movement(const PrimitiveRun& primitive) {
  by_kind(primitive.output_type(), [&]<class T>(T) {
    if (primitive.op() == ops::Op::strided) {
      read_view<T>(primitive);
    } else {
      write_view<T>(primitive);
    }
  });
}

}  // namespace russet::reference
