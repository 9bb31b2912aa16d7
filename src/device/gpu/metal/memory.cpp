#include "device/gpu/metal/memory.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <sys/mman.h>

#include <algorithm>

#include "device/gpu/metal/hooks.h"

namespace russet::metal {
namespace {

constexpr auto shared_memory = MTL::ResourceStorageModeShared;

/// Pages of ours, from one that is a page of the GPU's: the system's may be smaller.
class Mapping {
 public:
  /// Check begin() for nullptr.
  explicit Mapping(std::size_t bytes) : bytes_(bytes + page) {
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) memory_ = static_cast<std::byte*>(memory);
  }
  ~Mapping() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* begin() const {
    return memory_ == nullptr ? nullptr : memory_ + (page - reinterpret_cast<std::uintptr_t>(memory_) % page) % page;
  }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_;
};

/// Buffers over a range of addresses, kept resident: one, or several that start `stride` bytes apart.
class BufferBlock final : public gpu::Block {
 public:
  using Buffers = std::vector<NS::SharedPtr<MTL::Buffer>>;
  BufferBlock(std::byte* begin, std::size_t bytes, Buffers buffers, MTL::ResidencySet* residency,
              std::size_t stride = 0, std::unique_ptr<Mapping> mapping = {})
      : Block(begin, bytes),
        mapping_(std::move(mapping)),
        residency_(NS::RetainPtr(residency)),
        buffers_(std::move(buffers)),
        stride_(stride) {
    if (!residency_) return;
    for (const auto& buffer : buffers_) residency_->addAllocation(buffer.get());
    residency_->commit();
  }

  ~BufferBlock() override {
    const PoolScope pool;
    if (residency_) {
      for (const auto& buffer : buffers_) residency_->removeAllocation(buffer.get());
      residency_->commit();
    }
    buffers_.clear();
  }

  BufferOffset find(const std::byte* address, std::size_t bytes) const {
    const auto offset = static_cast<std::size_t>(address - begin());
    if (buffers_.size() == 1) return {buffers_[0].get(), offset};
    // The buffers overlap by half, so a tensor of up to half a buffer lies whole in the last one that starts before it.
    std::size_t index = std::min(offset / stride_, buffers_.size() - 1);
    while (true) {
      MTL::Buffer* const buffer = buffers_[index].get();
      if (offset - index * stride_ + bytes <= buffer->length()) return {buffer, offset - index * stride_};
      if (index == 0 || offset - (index - 1) * stride_ >= buffers_[index - 1]->length()) break;
      --index;
    }
    throw DeviceError(
        fmt::format("mps: a tensor of {} bytes does not fit into one buffer: they have {} bytes at most, and "
                    "up to half of that always fits. Use a smaller batch?",
                    bytes, buffers_[0]->length()));
  }

  const void* binding_of(const std::byte* address, std::size_t bytes) const override {
    return find(address, bytes).buffer;
  }

 private:
  std::unique_ptr<Mapping> mapping_;  // if the memory is ours, not Metal's or the CPU's
  NS::SharedPtr<MTL::ResidencySet> residency_;
  Buffers buffers_;
  std::size_t stride_;
};

}  // namespace

Memory::Memory(const Gpu& gpu) : gpu_(gpu) {
  if (gpu.macos < 15) return;
  const PoolScope pool;
  const auto descriptor = NS::TransferPtr(MTL::ResidencySetDescriptor::alloc()->init());
  NS::Error* error = nullptr;
  residency_ = NS::TransferPtr(gpu.device->newResidencySet(descriptor.get(), &error));
  if (residency_) residency_->requestResidency();
}

std::unique_ptr<gpu::Block> Memory::grant(std::size_t bytes) {
  if (bytes > gpu_.max_buffer) return map_windows(bytes);
  const PoolScope pool;
  auto buffer = NS::TransferPtr(gpu_.device->newBuffer(bytes, shared_memory));
  if (!buffer) return nullptr;
  auto* const begin = static_cast<std::byte*>(buffer->contents());
  return std::make_unique<BufferBlock>(begin, bytes, BufferBlock::Buffers{std::move(buffer)}, residency_.get());
}

std::unique_ptr<gpu::Block> Memory::map_windows(std::size_t bytes) {
  const PoolScope pool;
  auto mapping = std::make_unique<Mapping>(bytes);
  std::byte* const begin = mapping->begin();
  if (begin == nullptr) return nullptr;
  const std::size_t stride = gpu_.max_buffer / 2 / page * page;
  BufferBlock::Buffers buffers;
  for (std::size_t offset = 0; offset == 0 || offset + stride < bytes; offset += stride) {
    const std::size_t length = std::min(gpu_.max_buffer, bytes - offset);
    auto buffer = NS::TransferPtr(gpu_.device->newBuffer(begin + offset, length, shared_memory, nullptr));
    if (!buffer) return nullptr;
    buffers.push_back(std::move(buffer));
  }
  overlapping_ = true;
  return std::make_unique<BufferBlock>(begin, bytes, std::move(buffers), residency_.get(), stride, std::move(mapping));
}

std::unique_ptr<gpu::Block> Memory::borrow(std::byte* memory, std::size_t bytes) {
  if (bytes > gpu_.max_buffer) return nullptr;
  const PoolScope pool;
  auto buffer = NS::TransferPtr(gpu_.device->newBuffer(memory, bytes, shared_memory, nullptr));
  if (!buffer) return nullptr;
  if (hooks != nullptr) hooks->guard(buffer.get());
  return std::make_unique<BufferBlock>(memory, bytes, BufferBlock::Buffers{std::move(buffer)}, residency_.get());
}

BufferOffset find(const gpu::MemoryBlocks& blocks, const std::byte* address, std::size_t bytes) {
  return static_cast<const BufferBlock&>(blocks.find(address, bytes)).find(address, bytes);
}

}  // namespace russet::metal
