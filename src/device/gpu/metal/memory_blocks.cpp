#include "device/gpu/metal/memory_blocks.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <sys/mman.h>

#include <algorithm>

#include "device/gpu/metal/hooks.h"

namespace russet::metal {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t small_block = std::size_t{4} << 20;
constexpr std::size_t least_large_block = std::size_t{64} << 20;

std::size_t rounded(std::size_t bytes, std::size_t unit) { return std::max(unit, (bytes + unit - 1) / unit * unit); }

std::size_t unit_of(std::size_t bytes) { return bytes > page ? page : line; }

constexpr auto shared_memory = MTL::ResourceStorageModeShared;

}  // namespace

MemoryBlocks::MemoryBlocks(const Gpu& gpu) : gpu_(gpu) {
  if (gpu.macos >= 15) {
    const PoolScope pool;
    const auto descriptor = NS::TransferPtr(MTL::ResidencySetDescriptor::alloc()->init());
    NS::Error* error = nullptr;
    residency_ = NS::TransferPtr(gpu.device->newResidencySet(descriptor.get(), &error));
    if (residency_) residency_->requestResidency();
  }
  spare_ = allocate(line);
}

MemoryBlocks::~MemoryBlocks() {
  while (!blocks_.empty()) drop_block(blocks_.begin());
}

std::byte* MemoryBlocks::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > gpu_.working_set) throw_out_of_memory(bytes);
  const std::size_t unit = unit_of(bytes);
  const std::size_t block_bytes = unit == line ? small_block : large_block();
  if (bytes <= block_bytes / 2) return cut(rounded(bytes, unit), unit, block_bytes);
  return make_block(rounded(bytes, page)).begin;
}

void MemoryBlocks::release(std::byte* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto found = blocks_.upper_bound(memory);
  if (found == blocks_.begin()) throw InternalError("mps: memory is given back that was never granted");
  --found;
  Block& block = found->second;
  if (block.unit == 0) return drop_block(found);
  const auto offset = static_cast<std::size_t>(memory - block.begin);
  block.free.add({offset, offset + rounded(bytes, block.unit)});
  if (block.free.covers({0, block.bytes})) drop_block(found);
}

bool MemoryBlocks::borrow(std::byte* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto known = blocks_.find(memory);
  if (known != blocks_.end()) {
    ++known->second.borrowers;
    return true;
  }
  Block block;
  block.begin = memory;
  block.bytes = rounded(bytes, page);
  block.borrowers = 1;
  const bool whole_pages = reinterpret_cast<std::uintptr_t>(memory) % page == 0 && bytes > page;
  if (!whole_pages || block.bytes > gpu_.max_buffer || granted_ + block.bytes > gpu_.working_set) return false;
  const PoolScope pool;
  auto buffer = NS::TransferPtr(gpu_.device->newBuffer(memory, block.bytes, shared_memory, nullptr));
  if (!buffer) return false;
  if (hooks != nullptr) hooks->guard(buffer.get());
  block.buffers.push_back(std::move(buffer));
  add_block(std::move(block));
  return true;
}

void MemoryBlocks::end_borrowing(const std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) throw InternalError("mps: memory is given back that was never borrowed");
  if (--found->second.borrowers == 0) drop_block(found);
}

BufferOffset MemoryBlocks::find(const std::byte* address, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) throw InternalError("mps: a kernel is given memory that is not the GPU's");
  const Block& block = (--found)->second;
  const auto offset = static_cast<std::size_t>(address - block.begin);
  if (offset + bytes > block.bytes) throw InternalError("mps: a kernel is given memory that is not the GPU's");
  if (block.buffers.size() == 1) return {block.buffers[0].get(), offset};
  // The buffers overlap by half, so a tensor of up to half a buffer lies whole in the last one that starts before it.
  std::size_t index = std::min(offset / block.stride, block.buffers.size() - 1);
  while (true) {
    MTL::Buffer* const buffer = block.buffers[index].get();
    if (offset - index * block.stride + bytes <= buffer->length()) return {buffer, offset - index * block.stride};
    if (index == 0 || offset - (index - 1) * block.stride >= block.buffers[index - 1]->length()) break;
    --index;
  }
  throw DeviceError(
      fmt::format("mps: a tensor of {} bytes does not fit into one buffer: they have {} bytes at most, and "
                  "up to half of that always fits. Use a smaller batch?",
                  bytes, gpu_.max_buffer));
}

std::size_t MemoryBlocks::large_block() const {
  const std::size_t wanted = std::max(least_large_block, granted_ / 8);
  const std::size_t left = gpu_.working_set > granted_ ? gpu_.working_set - granted_ : 0;
  return std::min({wanted, left, gpu_.max_buffer}) / page * page;
}

// First fit: blocks are few, and the pool above asks for each size once.
std::byte* MemoryBlocks::cut(std::size_t bytes, std::size_t unit, std::size_t block_bytes) {
  const auto take = [&](Block& block) -> std::byte* {
    const auto fits = [&](const base::ByteRange& gap) { return gap.bytes() >= bytes; };
    const auto gap = std::find_if(block.free.begin(), block.free.end(), fits);
    if (gap == block.free.end()) return nullptr;
    const std::size_t offset = gap->begin;
    block.free.remove({offset, offset + bytes});
    return block.begin + offset;
  };
  for (auto& [begin, block] : blocks_) {
    if (block.unit != unit) continue;
    if (std::byte* const piece = take(block)) return piece;
  }
  Block& block = make_block(std::min(block_bytes, std::max(bytes, gpu_.max_buffer)));
  block.unit = unit;
  block.free.add({0, block.bytes});
  return take(block);
}

MemoryBlocks::Block& MemoryBlocks::make_block(std::size_t bytes) {
  const PoolScope pool;
  if (granted_ + bytes > gpu_.working_set) throw_out_of_memory(bytes);
  Block block;
  block.bytes = bytes;
  if (bytes <= gpu_.max_buffer) {
    auto buffer = NS::TransferPtr(gpu_.device->newBuffer(bytes, shared_memory));
    if (!buffer) throw_out_of_memory(bytes);
    block.begin = static_cast<std::byte*>(buffer->contents());
    block.buffers.push_back(std::move(buffer));
  } else {
    map_windows(block);
  }
  return add_block(std::move(block));
}

MemoryBlocks::Block& MemoryBlocks::add_block(Block block) {
  for (const auto& buffer : block.buffers) set_resident(buffer.get(), true);
  if (residency_) residency_->commit();
  granted_ += block.bytes;
  return blocks_[block.begin] = std::move(block);
}

void MemoryBlocks::map_windows(Block& block) {
  void* const memory = mmap(nullptr, block.bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_out_of_memory(block.bytes);
  block.mapping = memory;
  // The system's pages may be smaller than the GPU's.
  block.begin = static_cast<std::byte*>(memory) + (page - reinterpret_cast<std::uintptr_t>(memory) % page) % page;
  block.stride = gpu_.max_buffer / 2 / page * page;
  for (std::size_t offset = 0; offset == 0 || offset + block.stride < block.bytes; offset += block.stride) {
    const std::size_t length = std::min(gpu_.max_buffer, block.bytes - offset);
    auto buffer = NS::TransferPtr(gpu_.device->newBuffer(block.begin + offset, length, shared_memory, nullptr));
    if (!buffer) {
      block.buffers.clear();
      munmap(memory, block.bytes + page);
      throw_out_of_memory(block.bytes);
    }
    block.buffers.push_back(std::move(buffer));
  }
  overlapping_ = true;
}

void MemoryBlocks::drop_block(std::map<const std::byte*, Block>::iterator found) {
  const PoolScope pool;
  Block& block = found->second;
  for (const auto& buffer : block.buffers) set_resident(buffer.get(), false);
  if (residency_) residency_->commit();
  block.buffers.clear();
  if (block.mapping != nullptr) munmap(block.mapping, block.bytes + page);
  granted_ -= block.bytes;
  blocks_.erase(found);
}

void MemoryBlocks::set_resident(MTL::Buffer* buffer, bool resident) {
  if (!residency_) return;
  if (resident) {
    residency_->addAllocation(buffer);
  } else {
    residency_->removeAllocation(buffer);
  }
}

void MemoryBlocks::throw_out_of_memory(std::size_t bytes) const {
  throw OutOfMemoryError(fmt::format(
      "mps: {} bytes are needed, {} are in use, and the GPU grants {} (Metal's recommended working set). Use "
      "a smaller batch?",
      bytes, granted_, gpu_.working_set));
}

}  // namespace russet::metal
