#include "device/gpu/host_view.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace russet::gpu {
namespace {

constexpr std::uintptr_t alignment = 64;

std::byte* aligned(std::byte* memory) {
  return memory + (alignment - reinterpret_cast<std::uintptr_t>(memory) % alignment) % alignment;
}

/// What the regions cover of each slot.
std::map<std::int32_t, base::ByteRange> covered(std::span<const Region> regions, const compile::Bindings& bindings) {
  std::map<std::int32_t, base::ByteRange> ranges;
  for (const Region& region : regions) {
    if (region.bytes == 0) continue;
    const Binding binding = bound(region, bindings);
    const base::ByteRange range = base::range_of(binding.address, binding.bytes);
    const auto [known, is_new] = ranges.try_emplace(region.slot, range);
    known->second = {std::min(known->second.begin, range.begin), std::max(known->second.end, range.end)};
  }
  return ranges;
}

}  // namespace

HostView::HostView(Stream& stream, std::span<const Region> regions, const compile::Bindings& bindings,
                   std::size_t scratch_bytes)
    : stream_(stream), device_(bindings), host_(bindings) {
  stream_.wait();
  std::ranges::copy_if(regions, std::back_inserter(written_),
                       [](const Region& region) { return region.writes && region.bytes > 0; });
  if (stream_.shares_memory_with_host()) return;
  scratch_.resize(scratch_bytes + 2 * alignment);
  host_.scratch = aligned(scratch_.data());
  // What is empty has an address, too.
  std::int32_t last = -1;
  for (const Region& region : regions) last = std::max(last, region.slot);
  slots_.assign(static_cast<std::size_t>(last) + 1, host_.scratch);
  host_.slots = slots_.data();
  for (const auto& [slot, range] : covered(regions, bindings)) {
    std::byte* const address =
        bindings.slots[slot] + (range.begin - reinterpret_cast<std::uintptr_t>(bindings.slots[slot]));
    Copy copy{slot, address, range.bytes(), std::vector<std::byte>(range.bytes() + 2 * alignment), nullptr};
    copy.begin = aligned(copy.memory.data()) + range.begin % alignment;
    stream_.download({copy.begin, copy.bytes}, address);
    slots_[static_cast<std::size_t>(slot)] = copy.begin - (address - bindings.slots[slot]);
    copies_.push_back(std::move(copy));
  }
}

// Of two slots that lie in one memory, an operand's and the result's, the result's copy alone is the new value.
void HostView::write_back() {
  for (const Region& region : written_) {
    const Binding binding = bound(region, device_);
    if (stream_.shares_memory_with_host()) {
      stream_.host_wrote(binding.address, binding.bytes);
      continue;
    }
    const Copy& copy = *std::ranges::find(copies_, region.slot, &Copy::slot);
    stream_.upload(binding.address, {copy.begin + (binding.address - copy.address), binding.bytes});
  }
}

}  // namespace russet::gpu
