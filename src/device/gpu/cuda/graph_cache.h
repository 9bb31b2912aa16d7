#pragma once
// GraphCache: graphs of submissions that came more than once of late.
#include <deque>
#include <list>
#include <memory>
#include <unordered_set>

#include "device/gpu/cuda/graph.h"

namespace russet::cuda {

/// Not thread-safe.
class GraphCache {
 public:
  GraphCache(const Context& context, gpu::MemoryBlocks& blocks) : context_(context), blocks_(blocks) {}

  /// The graph of these launches; nullptr if they did not come lately, are too few, or become none. `stream`: where
  /// graphs run.
  Graph* find(const LaunchList& launches, CUstream stream);

 private:
  struct Known {
    std::uint64_t digest;
    std::unique_ptr<Graph> graph;
  };
  Graph* make(const LaunchList& launches, std::uint64_t digest);
  void make_room(std::size_t launches, CUstream stream);

  const Context& context_;
  gpu::MemoryBlocks& blocks_;
  std::list<Known> graphs_;                    // the last one that was used first
  std::size_t launches_ = 0;                   // of all graphs
  std::deque<std::uint64_t> seen_;             // digests of the last launches that have no graph yet
  std::unordered_set<std::uint64_t> refused_;  // that become none
};

}  // namespace russet::cuda
