#pragma once
// Graph: launches that CUDA has as one, each of which starts when those that it must wait for have ended.
#include <deque>

#include "device/gpu/cuda/launch_list.h"

namespace russet::cuda {

/// Launches that conflict (one writes what another touches) run in the order of the list, others at any time.
class Graph {
 public:
  /// Throws DeviceError, OutOfMemoryError.
  Graph(const Context& context, LaunchList launches, gpu::MemoryBlocks& blocks);
  /// The GPU must have ended what it was given.
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const LaunchList& launches() const { return launches_; }
  /// Where what changes must lie when the graph runs; nullptr if nothing changes.
  std::byte* changing() const { return changing_; }
  /// Whether that lies there when the work on the stream so far has ended.
  bool holds(std::span<const std::byte> content) const;
  /// Whether it lay there before what lies there now, not long ago.
  bool held_lately(std::span<const std::byte> content) const;
  /// Says that the content is being copied there.
  void note_sent(std::span<const std::byte> content);
  CUresult launch(CUstream stream) const { return api().graph_launch(executable_, stream); }

 private:
  void add_launches(CUgraph graph);

  const Context& context_;
  gpu::MemoryBlocks& blocks_;
  LaunchList launches_;
  std::byte* changing_ = nullptr;
  std::vector<std::byte> sent_;
  std::deque<std::size_t> sent_lately_;  // digests
  CUgraphExec executable_ = nullptr;
};

/// For each launch of the list the earlier ones that it waits for itself: not those that these wait for already. Of
/// those that need none four run side by side, others wait for one of them.
std::vector<std::vector<std::size_t>> dependencies_of(const LaunchList& launches);

}  // namespace russet::cuda
