#include "device/gpu/templates/text.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "device/gpu/emitter/divisor.h"

namespace russet::gpu {

std::string_view element_type(DType type) {
  constexpr std::string_view names[] = {"bool", "uchar", "char", "short", "int", "long", "half", "bfloat", "float", ""};
  return names[static_cast<int>(type)];
}

std::string_view bits_type(DType type) {
  switch (size_of(type)) {
    case 1: return "uchar";
    case 2: return "ushort";
    case 4: return "uint";
    default: return "ulong";
  }
}

std::string_view sum_type(DType type) { return is_floating(type) ? "float" : "ulong"; }
std::string_view key_type(DType type) { return is_floating(type) ? "float" : "long"; }

std::string why_no_type(const compile::Primitive& primitive) {
  bool wide = primitive.output.access.dtype == DType::float64;
  for (const compile::Operand& input : primitive.inputs) wide |= input.access.dtype == DType::float64;
  return wide ? "the GPU has no float64" : "";
}

void add_axis_size(Values& values, std::int64_t size) {
  const auto number = static_cast<std::uint32_t>(std::max<std::int64_t>(size, 1));
  const Divisor divisor(number);
  values.add(number);
  values.add(divisor.multiplier);
  values.add(divisor.shift);
}

void StridedAxes::add_to(Values& values) const {
  for (int axis = 0; axis < max_rank; ++axis) values.add(axis < sizes.rank() ? strides[axis] : std::int64_t{0});
  values.add(start);
  for (int axis = 0; axis < max_rank; ++axis) {
    values.add(static_cast<std::uint32_t>(axis < sizes.rank() ? sizes[axis] : 1));
  }
  values.add(static_cast<std::uint32_t>(sizes.rank()));
  values.add(std::uint32_t{0});
}

void StridedAxes::add_axis(std::int64_t size, std::int64_t stride) {
  if (size == 1) return;
  const int rank = sizes.rank();
  if (rank > 0 && strides[rank - 1] == size * stride) {
    sizes[rank - 1] *= size;
    strides[rank - 1] = stride;
    return;
  }
  sizes.push_back(size);
  strides.push_back(stride);
}

StridedAxes axes_of(const compile::Operand& operand, int first, int last, std::int64_t start) {
  StridedAxes list;
  list.start = start;
  for (int axis = first; axis < last; ++axis) list.add_axis(operand.sizes[axis], operand.access.strides[axis]);
  return list;
}

OrderedLines ordered_lines(const compile::Primitive& primitive) {
  const compile::Operand& input = primitive.inputs[0];
  const compile::Operand& output = primitive.output;
  const int line_axis = input.sizes.empty() ? -1 : std::countr_zero(attribute<ops::Axes>(primitive).mask);
  OrderedLines lines;
  lines.from.start = place(input, false).first;
  lines.to.start = place(output, true).first;
  for (int axis = 0; axis < input.sizes.rank(); ++axis) {
    if (axis == line_axis) {
      lines.length = input.sizes[axis];
      lines.stride = input.access.strides[axis];
      lines.result_stride = output.access.strides[axis];
    } else {
      lines.count *= input.sizes[axis];
      lines.from.add_axis(input.sizes[axis], input.access.strides[axis]);
      lines.to.add_axis(output.sizes[axis], output.access.strides[axis]);
    }
  }
  return lines;
}

std::uint32_t grid_size(std::int64_t groups) {
  if (groups > std::numeric_limits<std::uint32_t>::max()) {
    throw TypeError(fmt::format("mps: a launch of {} threadgroups: at most 2^32 - 1 fit", groups));
  }
  return static_cast<std::uint32_t>(groups);
}

std::uint32_t groups_for(std::int64_t threads) { return grid_size((threads + 255) / 256); }

}  // namespace russet::gpu
