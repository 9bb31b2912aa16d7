#pragma once
// GraphCache: graphs of submissions that came more than once of late.
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <unordered_set>

#include "device/gpu/cuda/graph.h"

namespace russet::cuda {

/// Not thread-safe.
class GraphCache {
 public:
  GraphCache(const Context& context, gpu::MemoryBlocks& blocks) : context_(context), blocks_(blocks) {}

  /// A graph of these launches, one for which `changing` (the content of what changes) lies there already if there is
  /// one; nullptr if they did not come lately, are too few, or become none. `stream`: where graphs run.
  Graph* find(const LaunchList& launches, std::span<const std::byte> changing, CUstream stream);

 private:
  struct Known {
    std::uint64_t digest;
    std::unique_ptr<Graph> graph;
  };
  using Place = std::list<Known>::iterator;
  Graph* use(Place place);
  Graph* find_among_last(const LaunchList& launches, std::span<const std::byte> changing);
  Graph* choose(std::span<const Place> alike, std::span<const std::byte> changing);
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
