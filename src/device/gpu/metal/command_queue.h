#pragma once
// CommandQueue: work as Metal's command buffers, which run one after another.
#include <vector>

#include "base/range_set.h"
#include "device/gpu/driver/chunks.h"
#include "device/gpu/driver/queue.h"
#include "device/gpu/metal/capture.h"
#include "device/gpu/metal/compiler.h"
#include "device/gpu/metal/memory.h"

namespace russet::metal {

class CommandQueue final : public gpu::Queue {
 public:
  /// `capture` counts the command buffers.
  CommandQueue(const Gpu& gpu, const Memory& memory, gpu::MemoryBlocks& blocks, Capture& capture);

  void begin() override;
  void encode(const gpu::Launch& launch) override;
  void barrier() override;
  std::unique_ptr<gpu::Submission> submit() override;
  void drop() override;
  /// Makes a new one: Metal ignores what a queue is given after an error.
  void restart(const std::string& reason) override;

  void begin_value(base::ByteRange range) override;
  void forget_value(base::ByteRange range) override { births_.remove(range); }
  void finish_values() override;

 private:
  void bind(MTL::Buffer* buffer, std::size_t offset, std::size_t index);
  void bind_buffers(const gpu::Launch& launch);
  /// Binds the blocks of memory that the buffers lie in, and the table, after writing the buffers' addresses into it.
  void bind_bases(const gpu::Launch& launch);
  void bind_parameters(std::span<const std::byte> parameters, std::size_t index);
  BufferOffset anywhere() const { return find(blocks_, blocks_.anywhere(), 1); }

  const Gpu& gpu_;
  const Memory& memory_;
  gpu::MemoryBlocks& blocks_;
  Capture& capture_;
  NS::SharedPtr<MTL::CommandQueue> queue_;
  NS::SharedPtr<MTL::Fence> fence_;
  gpu::Chunks chunks_;
  // The command buffer that is being written.
  NS::SharedPtr<MTL::CommandBuffer> buffer_;
  NS::SharedPtr<MTL::ComputeCommandEncoder> encoder_;
  std::vector<gpu::Chunk> tables_;
  const gpu::Pipeline* pipeline_ = nullptr;
  std::vector<BufferOffset> bound_;
  std::vector<std::byte> table_;  // of the launch that is being encoded
  base::RangeSet births_;
};

}  // namespace russet::metal
