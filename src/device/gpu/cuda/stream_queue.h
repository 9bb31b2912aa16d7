#pragma once
// StreamQueue: submissions as CUDA graphs on a stream, those that come for the first time launch by launch.
#include <string>
#include <vector>

#include "device/gpu/cuda/graph_cache.h"
#include "device/gpu/driver/chunks.h"
#include "device/gpu/driver/queue.h"

namespace russet::cuda {

class StreamQueue final : public gpu::Queue {
 public:
  StreamQueue(const Context& context, gpu::MemoryBlocks& blocks);
  ~StreamQueue() override;
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  bool keeps_flushes_whole() const override { return true; }
  void begin() override { launches_.clear(); }
  void encode(const gpu::Launch& launch) override { launches_.add(launch, blocks_); }
  /// Graphs order launches by what they touch, and a stream's never overlap.
  void barrier() override {}
  std::unique_ptr<gpu::Submission> submit() override;
  void drop() override { launches_.clear(); }
  /// CUDA gives up on all of a process' work after a fault. Throws DeviceError that says so.
  void restart(const std::string& reason) override;

 private:
  void start(std::vector<gpu::Chunk>& pinned, std::vector<gpu::Chunk>& memory);
  void start_one_by_one(const std::byte* changing);
  /// Copies what changes, by way of memory that the GPU reads at full speed.
  void send(std::byte* target, std::vector<gpu::Chunk>& pinned);
  void note(CUresult result);

  const Context& context_;
  gpu::MemoryBlocks& blocks_;
  gpu::Chunks pinned_;
  gpu::Chunks memory_;
  GraphCache graphs_;
  CUstream stream_ = nullptr;
  LaunchList launches_;  // of the submission that is being written
  std::string failure_;  // the first one: CUDA has given up
};

}  // namespace russet::cuda
