#include "device/gpu/gpu_kernel.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>

#include "compile/indices.h"
#include "device/gpu/host_view.h"

namespace russet::gpu {

Placed place(const compile::Access& access, const Shape& sizes, bool writes) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool empty = false;
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    empty |= sizes[axis] == 0 && access.strides[axis] != 0;  // a broadcast access touches one element even so
    (access.strides[axis] < 0 ? low : high) += access.strides[axis] * (sizes[axis] - 1);
  }
  const auto size = static_cast<std::int64_t>(size_of(access.dtype));
  Placed placed;
  placed.region.slot = access.slot;
  placed.region.writes = writes;
  placed.region.argument = access.offset_argument;
  placed.region.scale = access.offset_argument < 0 ? 0 : size;
  if (empty) return placed;
  const std::int64_t in_a_byte = access.packed ? 4 : 1;
  placed.region.offset = (access.offset + low) * size / in_a_byte;
  placed.region.bytes = static_cast<std::size_t>(((high - low) / in_a_byte + 1) * size);
  placed.first = -low;
  return placed;
}

GpuKernel::GpuKernel(const GpuContext& context, std::string name, std::vector<Call> calls, std::size_t scratch_bytes)
    : library_(context.library),
      stream_(context.stream),
      name_(std::move(name)),
      calls_(std::move(calls)),
      scratch_bytes_(scratch_bytes) {
  std::erase_if(calls_,
                [](const Call& call) { return call.groups[0] == 0 || call.groups[1] == 0 || call.groups[2] == 0; });
  if (!calls_.empty()) calls_.front().is_further_part = false;
  const std::size_t most = context.properties.runs_samples ? max_sample_buffers : max_buffers;
  for (const Call& call : calls_) {
    if (!call.members.empty()) continue;
    if (call.regions.size() > most || call.values.bytes.size() > max_value_bytes || call.groups[1] > 65535 ||
        call.groups[2] > 65535) {
      throw InternalError(fmt::format("{}: a launch of {} has {} buffers, {} bytes of values and {} x {} x {} groups",
                                      name_, call.function->name(), call.regions.size(), call.values.bytes.size(),
                                      call.groups[0], call.groups[1], call.groups[2]));
    }
  }
}

void GpuKernel::model(double seconds, const GpuContext& context) {
  const auto bytes_of = [](const Call& call) {
    double bytes = 0;
    for (const Region& region : call.regions) bytes += static_cast<double>(region.bytes);
    return bytes;
  };
  double most = 1;
  for (const Call& call : calls_) most = std::max(most, bytes_of(call));
  for (Call& call : calls_) call.seconds = seconds * bytes_of(call) / most;
  calls_ = sliced(std::move(calls_), context);
}

Binding bound(const Region& region, const compile::Bindings& bindings) {
  std::byte* base = region.slot == Region::scratch ? bindings.scratch : bindings.slots[region.slot];
  std::int64_t offset = region.offset;
  if (region.argument >= 0) offset += region.scale * static_cast<std::int64_t>(bindings.arguments[region.argument]);
  return {base + offset, region.bytes, region.writes};
}

void FilledCall::fill(const Call& call, const compile::Bindings& bindings) {
  launch_.buffers_move = false;
  for (std::size_t i = 0; i < call.regions.size(); ++i) {
    buffers_[i] = bound(call.regions[i], bindings);
    launch_.buffers_move |= call.regions[i].argument >= 0;
  }
  const std::size_t size = call.values.bytes.size();
  std::copy_n(call.values.bytes.begin(), size, values_.begin());
  for (const Patch& patch : call.values.patches) apply(patch, bindings.arguments[patch.argument], values_.data());
  launch_.pipeline = call.function->pipeline();
  launch_.groups = call.groups;
  launch_.threads = call.function->source().threads;
  launch_.buffers = std::span(buffers_).first(call.regions.size());
  launch_.parameters = std::span<const std::byte>(values_).first(size);
  launch_.parameters_change = !call.values.patches.empty();
  launch_.patches = call.values.patches;
  launch_.maps = call.values.maps;
  launch_.seconds = call.seconds;
  launch_.is_further_part = call.is_further_part;
}

void GpuKernel::check_indices_of(const compile::Primitive& primitive) {
  checked_ = primitive;
  for (const compile::Operand& index : compile::indices_of(primitive)) {
    index_regions_.push_back(place(index, false).region);
  }
  name_ += ", waits for its index";
}

bool GpuKernel::only_launches() const {
  return !checked_ && std::ranges::none_of(calls_, [](const Call& call) { return call.is_slice; });
}

void GpuKernel::run(const compile::Bindings& bindings) const {
  if (checked_) {
    const HostView view(stream_, index_regions_, bindings);
    compile::require_indices(*checked_, view.bindings());
  }
  FilledCall filled;
  for (const Call& call : calls_) {
    if (call.function->pipeline() == nullptr) library_.build({&call.function, 1});
    if (!call.members.empty()) {
      if (call.is_slice) stream_.commit();
      run_members(call, bindings);
      if (call.is_slice) stream_.commit();
      continue;
    }
    filled.fill(call, bindings);
    stream_.launch(filled.launch());
  }
}

}  // namespace russet::gpu
