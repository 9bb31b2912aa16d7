#include "device/gpu/cuda/launch_list.h"

#include <russet/error.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/bytes.h"

namespace russet::cuda {
namespace {

/// As much as any member of values and tables wants.
constexpr std::size_t alignment = 256;
/// A struct with members of 8 bytes is a multiple of that, which its values need not be.
constexpr std::size_t value_alignment = 8;

std::size_t rounded(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// MurmurHash3's finaliser (Appleby), over one word after the other.
void mix(std::uint64_t& state, std::uint64_t word) {
  state ^= word;
  state = (state ^ state >> 33) * 0xFF51AFD7ED558CCDULL;
  state = (state ^ state >> 33) * 0xC4CEB9FE1A85EC53ULL;
  state ^= state >> 33;
}

/// Of whole words, in four sums that do not wait for each other.
std::uint64_t digest_of(std::span<const std::byte> words) {
  constexpr std::uint64_t factor = 0x9E3779B97F4A7C15ULL;  // odd: of 2^64 by the golden ratio
  std::array<std::uint64_t, 4> sums{1, 2, 3, 4};
  for (std::size_t at = 0; at < words.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, words.data() + at, sizeof(word));
    std::uint64_t& sum = sums[at / sizeof(word) % sums.size()];
    sum = (sum ^ word) * factor;
  }
  std::uint64_t state = words.size();
  for (const std::uint64_t sum : sums) mix(state, sum);
  return state;
}

}  // namespace

void LaunchList::clear() {
  items_.clear();
  addresses_.clear();
  reached_.clear();
  bindings_.clear();
  values_.clear();
  changing_.clear();
  patches_.clear();
  buffers_move_ = false;
}

void LaunchList::add(const gpu::Launch& launch, const gpu::MemoryBlocks& blocks) {
  Item item;
  item.pipeline = static_cast<const Pipeline&>(*launch.pipeline).shared_from_this();
  item.grid = {launch.groups, launch.threads};
  item.addresses = addresses_.size();
  item.bindings = bindings_.size();
  item.values = values_.size();
  item.is_further_part = launch.is_further_part;
  bindings_.insert(bindings_.end(), launch.buffers.begin(), launch.buffers.end());
  buffers_move_ |= launch.buffers_move;
  if (launch.parameters_change) {
    const std::span<std::byte> changing = add_changing(launch.parameters);
    item.changes = changing.data() - changing_.data();
    for (gpu::Patch patch : launch.patches) {
      patch.at += static_cast<std::uint32_t>(item.changes);
      patches_.push_back(patch);
    }
    launch.places.empty() ? add_buffers(launch, blocks) : add_places(launch, blocks, changing);
  } else {
    add_buffers(launch, blocks);
    item.has_values = !launch.parameters.empty();
    values_.insert(values_.end(), launch.parameters.begin(), launch.parameters.end());
    for (const gpu::TensorMap& map : launch.maps) write(map, launch.buffers[map.buffer], item);
    values_.resize(rounded(values_.size(), value_alignment));
  }
  items_.push_back(std::move(item));
}

/// CUDA driver API, 6.31 "Tensor Map Object Management": what lies beyond the matrix reads as 0, and pieces of 16 bytes
/// of a line of 128 are exchanged as wgmma takes them.
void LaunchList::write(const gpu::TensorMap& map, const gpu::Binding& buffer, const Item& item) {
  CUtensorMap encoded{};
  const cuuint64_t sizes[] = {map.width, map.height};
  const cuuint64_t strides[] = {map.stride};
  const cuuint32_t box[] = {map.box_width, map.box_height};
  const cuuint32_t steps[] = {1, 1};
  check(api().tensor_map_encode_tiled(&encoded, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, buffer.address + map.offset, sizes,
                                      strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "describing a matrix");
  std::memcpy(values_.data() + item.values + map.at, &encoded, sizeof(encoded));
}

std::span<std::byte> LaunchList::add_changing(std::span<const std::byte> parameters) {
  const std::size_t begin = rounded(changing_.size(), alignment);
  changing_.resize(begin + parameters.size());
  std::ranges::copy(parameters, changing_.begin() + static_cast<std::ptrdiff_t>(begin));
  return std::span(changing_).subspan(begin);
}

void LaunchList::add_buffers(const gpu::Launch& launch, const gpu::MemoryBlocks& blocks) {
  for (const gpu::Binding& binding : launch.buffers) {
    addresses_.push_back(binding.bytes == 0 ? blocks.anywhere() : binding.address);
  }
}

/// The table changes without the graph: its addresses may be others in each run, since a plan runs again only on memory
/// that overlaps as before (the plan's key). That they lie in the same blocks is what remains to be compared.
void LaunchList::add_places(const gpu::Launch& launch, const gpu::MemoryBlocks& blocks, std::span<std::byte> table) {
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const gpu::Binding& binding = launch.buffers[i];
    if (binding.bytes == 0) continue;
    std::memcpy(table.data() + launch.places[i], &binding.address, sizeof(binding.address));
    const std::byte* const block = blocks.find(binding.address, binding.bytes).begin();
    if (reached_.empty() || reached_.back() != block) reached_.push_back(block);
  }
}

void LaunchList::put_arguments(std::span<const std::uint64_t> arguments, std::span<std::byte> changing) const {
  for (const gpu::Patch& patch : patches_) {
    gpu::apply(patch, arguments[static_cast<std::size_t>(patch.argument)], changing.data());
  }
}

std::span<const gpu::Binding> LaunchList::bindings_of(std::size_t item) const {
  const std::size_t end = item + 1 < items_.size() ? items_[item + 1].bindings : bindings_.size();
  return std::span(bindings_).subspan(items_[item].bindings, end - items_[item].bindings);
}

std::vector<void*> LaunchList::arguments_of(std::size_t item, const std::byte* changing) const {
  const Item& launch = items_[item];
  const std::size_t end = item + 1 < items_.size() ? items_[item + 1].addresses : addresses_.size();
  std::vector<void*> arguments;
  // CUDA copies what these point at, and writes nothing.
  const auto add = [&](const void* argument) { arguments.push_back(const_cast<void*>(argument)); };
  for (std::size_t i = launch.addresses; i < end; ++i) add(&addresses_[i]);
  if (launch.changes >= 0) {
    changing_argument_ = changing + launch.changes;
    add(&changing_argument_);
  } else if (launch.has_values) {
    add(&values_[launch.values]);
  }
  return arguments;
}

std::uint64_t LaunchList::digest() const {
  std::uint64_t state = items_.size();
  for (const Item& item : items_) {
    mix(state, std::bit_cast<std::uintptr_t>(item.pipeline.get()));
    mix(state, std::uint64_t{item.grid.blocks[0]} << 32 | item.grid.blocks[1]);
  }
  for (const auto* const list : {&addresses_, &reached_}) {
    for (const std::byte* const address : *list) mix(state, std::bit_cast<std::uintptr_t>(address));
  }
  mix(state, digest_of(values_));
  return state;
}

bool LaunchList::same_launches(const LaunchList& other) const {
  return items_ == other.items_ && addresses_ == other.addresses_ && reached_ == other.reached_ &&
         base::same_bytes(values_, other.values_) && changing_.size() == other.changing_.size();
}

}  // namespace russet::cuda
