#pragma once
// Memory: the GPU's memory as the blocks that memory is cut of, copies to and from it, and memory of the host that the
// GPU copies from at full speed.
#include <span>

#include "device/gpu/cuda/context.h"
#include "device/gpu/driver/memory_blocks.h"

namespace russet::cuda {

class Memory final : public gpu::BlockSource {
 public:
  explicit Memory(const Context& context);
  ~Memory() override;

  std::string limit_name() const override { return "the GPU's memory"; }
  std::size_t limit() const override { return context_.memory_bytes(); }
  std::size_t most_of_cut_block() const override { return context_.memory_bytes(); }
  std::unique_ptr<gpu::Block> grant(std::size_t bytes) override;

  /// Copies, and waits until they are done. No work may touch the GPU's side in conflict.
  void clear(std::byte* target, std::size_t bytes) const;
  void copy_to_device(std::byte* target, std::span<const std::byte> source) const;
  void copy_to_host(std::span<std::byte> target, const std::byte* source) const;

 private:
  const Context& context_;
  CUstream copies_ = nullptr;
};

/// An address of the GPU's memory, as CUDA takes it.
inline CUdeviceptr device_address(const std::byte* address) { return reinterpret_cast<CUdeviceptr>(address); }

/// Pages that stay in the host's memory. Throws OutOfMemoryError.
std::byte* allocate_pinned(const Context& context, std::size_t bytes);
void release_pinned(const Context& context, std::byte* memory);

}  // namespace russet::cuda
