#include "device/gpu/cuda/graph_cache.h"

#include <russet/error.h>

#include <algorithm>

#include "base/log.h"

namespace russet::cuda {
namespace {

/// Fewer are as fast without.
constexpr std::size_t fewest_launches = 3;
/// Of all graphs: a launch takes CUDA a few KiB.
constexpr std::size_t most_launches = 20000;
/// What comes again later than that does not come often enough: outputs of a loop that are all kept lie at as many
/// addresses as it has steps, and a graph of each step takes longer to make than its launches.
constexpr std::size_t most_seen = 64;
constexpr std::size_t most_refused = 4096;

}  // namespace

Graph* GraphCache::find(const LaunchList& launches, CUstream stream) {
  if (launches.items().size() < fewest_launches) return nullptr;
  // Most loops launch one graph, over and over.
  if (!graphs_.empty() && graphs_.front().graph->launches().same_launches(launches)) return graphs_.front().graph.get();
  const std::uint64_t digest = launches.digest();
  const auto known = std::ranges::find_if(
      graphs_, [&](const Known& one) { return one.digest == digest && one.graph->launches().same_launches(launches); });
  if (known != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, known);
    return graphs_.front().graph.get();
  }
  if (refused_.contains(digest)) return nullptr;
  const auto seen = std::ranges::find(seen_, digest);
  if (seen == seen_.end()) {
    seen_.push_back(digest);
    if (seen_.size() > most_seen) seen_.pop_front();
    return nullptr;
  }
  seen_.erase(seen);
  make_room(launches.items().size(), stream);
  return make(launches, digest);
}

Graph* GraphCache::make(const LaunchList& launches, std::uint64_t digest) {
  try {
    graphs_.push_front({digest, std::make_unique<Graph>(context_, launches, blocks_)});
  } catch (const Error& error) {
    static const base::Log log("kernels");
    log("cuda: no graph was made of {} launches: {}", launches.items().size(), error.what());
    if (refused_.size() >= most_refused) refused_.clear();
    refused_.insert(digest);
    return nullptr;
  }
  launches_ += launches.items().size();
  return graphs_.front().graph.get();
}

void GraphCache::make_room(std::size_t launches, CUstream stream) {
  if (graphs_.empty() || launches_ + launches <= most_launches) return;
  api().stream_synchronize(stream);  // they may still run
  while (!graphs_.empty() && launches_ + launches > most_launches) {
    launches_ -= graphs_.back().graph->launches().items().size();
    graphs_.pop_back();
  }
}

}  // namespace russet::cuda
