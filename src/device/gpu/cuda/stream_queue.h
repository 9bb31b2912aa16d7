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
  void begin() override;
  /// By way of memory that the GPU reads at full speed.
  bool upload(std::byte* target, std::span<const std::byte> source) override;
  void upload_staged(std::byte* target, const graph::StagingMemory& source, std::size_t bytes) override;
  bool clear(std::byte* target, std::size_t bytes) override;
  void encode(const gpu::Launch& launch) override;
  /// Graphs order launches by what they touch, and a stream's never overlap.
  void barrier() override {}
  /// Events that keep the time stand between submissions: a step of mlp's evaluation takes 1.17 times as long with
  /// them.
  void keep_times(bool keeps) override { keeps_times_ = keeps; }
  bool keeps_launches() const override { return true; }
  std::shared_ptr<const gpu::Encoded> encoded() const override;
  void repeat(std::shared_ptr<const gpu::Encoded> encoded, std::span<const std::uint64_t> arguments) override;
  std::unique_ptr<gpu::Submission> submit() override;
  void drop() override;
  /// CUDA gives up on all of a process' work after a fault. Throws DeviceError that says so.
  void restart(const std::string& reason) override;

 private:
  struct Upload {
    std::byte* target;
    const std::byte* source;  // nullptr: zeros
    std::size_t bytes;
  };

  const LaunchList& launches() const { return repeated_ ? *repeated_ : launches_; }
  std::span<const std::byte> changing() const { return repeated_ ? repeated_changing_ : launches_.changing(); }
  void start(std::vector<gpu::Chunk>& pinned, std::vector<gpu::Chunk>& memory);
  void start_one_by_one(const std::byte* changing);
  /// Copies what changes, by way of memory that the GPU reads at full speed.
  void send(std::byte* target, std::vector<gpu::Chunk>& pinned);
  void copy(const Upload& upload);
  void note(CUresult result);

  const Context& context_;
  gpu::MemoryBlocks& blocks_;
  gpu::Chunks pinned_;
  gpu::Chunks memory_;
  gpu::Chunks staging_;  // pinned, too, for uploads
  GraphCache graphs_;
  CUstream stream_ = nullptr;
  bool keeps_times_ = false;
  // Of the submission that is being written.
  LaunchList launches_;
  std::shared_ptr<const LaunchList> repeated_;  // instead, if there are any
  std::vector<std::byte> repeated_changing_;    // and instead of what changes in them
  std::vector<Upload> uploads_;
  std::vector<gpu::Chunk> staged_;
  std::vector<graph::StagingMemory> sources_;  // of uploads
  std::string failure_;                        // the first one: CUDA has given up
};

}  // namespace russet::cuda
