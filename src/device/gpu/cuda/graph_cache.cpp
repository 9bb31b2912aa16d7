#include "device/gpu/cuda/graph_cache.h"

#include <russet/error.h>

#include <algorithm>
#include <vector>

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
/// Of the same launches: where two contents come in turn (a step's result lies at one of two addresses while the last
/// one is held), each has a graph and is not sent again. Sending takes the GPU some 13 us.
constexpr std::size_t most_alike = 2;

}  // namespace

Graph* GraphCache::use(Place place) {
  graphs_.splice(graphs_.begin(), graphs_, place);
  return graphs_.front().graph.get();
}

/// Most loops launch one graph over and over, or two in turn.
Graph* GraphCache::find_among_last(const LaunchList& launches, std::span<const std::byte> changing) {
  Place place = graphs_.begin();
  for (std::size_t i = 0; i < most_alike && place != graphs_.end(); ++i, ++place) {
    if (place->graph->launches().same_launches(launches) && place->graph->holds(changing)) return use(place);
  }
  return nullptr;
}

/// Of graphs of the same launches, the last one that was used first. nullptr if another one is worth making.
Graph* GraphCache::choose(std::span<const Place> alike, std::span<const std::byte> changing) {
  const auto holds = [&](Place place) { return place->graph->holds(changing); };
  if (const auto found = std::ranges::find_if(alike, holds); found != alike.end()) return use(*found);
  const auto held = [&](Place place) { return place->graph->held_lately(changing); };
  if (alike.size() < most_alike && std::ranges::any_of(alike, held)) return nullptr;
  return use(alike.back());
}

Graph* GraphCache::find(const LaunchList& launches, std::span<const std::byte> changing, CUstream stream) {
  if (launches.items().size() < fewest_launches) return nullptr;
  if (Graph* const found = find_among_last(launches, changing)) return found;
  const std::uint64_t digest = launches.digest();
  std::vector<Place> alike;
  for (Place place = graphs_.begin(); place != graphs_.end(); ++place) {
    if (place->digest == digest && place->graph->launches().same_launches(launches)) alike.push_back(place);
  }
  if (!alike.empty()) {
    if (Graph* const chosen = choose(alike, changing)) return chosen;
    make_room(launches.items().size(), stream);
    return make(launches, digest);
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
