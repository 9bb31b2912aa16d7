#include "graph/min_cut.h"

#include <algorithm>

namespace russet::graph {

void MinCut::reset(std::int32_t count) {
  edges_.clear();
  first_.assign(static_cast<std::size_t>(count), -1);
}

void MinCut::add_edge(std::int32_t from, std::int32_t to, std::int64_t capacity) {
  const auto link = [&](std::int32_t a, std::int32_t b, std::int64_t rest) {
    std::int32_t& head = first_[static_cast<std::size_t>(a)];
    edges_.push_back({b, head, rest});
    head = static_cast<std::int32_t>(edges_.size()) - 1;
  };
  link(from, to, capacity);
  link(to, from, 0);
}

/// Distances from the source along edges with capacity left; whether the sink has one.
bool MinCut::find_levels(std::int32_t source, std::int32_t sink) {
  level_.assign(first_.size(), -1);
  level_[static_cast<std::size_t>(source)] = 0;
  queue_.assign(1, source);
  for (std::size_t at = 0; at < queue_.size(); ++at) {
    const std::int32_t vertex = queue_[at];
    for (std::int32_t e = first_[static_cast<std::size_t>(vertex)]; e >= 0;
         e = edges_[static_cast<std::size_t>(e)].next) {
      const Edge& edge = edges_[static_cast<std::size_t>(e)];
      std::int32_t& level = level_[static_cast<std::size_t>(edge.to)];
      if (edge.rest == 0 || level >= 0) continue;
      level = level_[static_cast<std::size_t>(vertex)] + 1;
      queue_.push_back(edge.to);
    }
  }
  return level_[static_cast<std::size_t>(sink)] >= 0;
}

/// Sends what fits along one path that goes up a level with each edge; false if there is none. Dead ends are not tried
/// again (`current_`).
bool MinCut::augment(std::int32_t source, std::int32_t sink) {
  path_.clear();
  std::int32_t vertex = source;
  while (vertex != sink) {
    std::int32_t& e = current_[static_cast<std::size_t>(vertex)];
    while (e >= 0) {
      const Edge& edge = edges_[static_cast<std::size_t>(e)];
      if (edge.rest > 0 && level_[static_cast<std::size_t>(edge.to)] == level_[static_cast<std::size_t>(vertex)] + 1)
        break;
      e = edge.next;
    }
    if (e >= 0) {
      path_.push_back(e);
      vertex = edges_[static_cast<std::size_t>(e)].to;
      continue;
    }
    if (path_.empty()) return false;
    const std::int32_t back = path_.back();
    path_.pop_back();
    vertex = edges_[static_cast<std::size_t>(back ^ 1)].to;
    std::int32_t& tried = current_[static_cast<std::size_t>(vertex)];
    tried = edges_[static_cast<std::size_t>(tried)].next;
  }
  std::int64_t flow = unlimited;
  for (const std::int32_t e : path_) flow = std::min(flow, edges_[static_cast<std::size_t>(e)].rest);
  for (const std::int32_t e : path_) {
    Edge& forth = edges_[static_cast<std::size_t>(e)];
    Edge& back = edges_[static_cast<std::size_t>(e ^ 1)];
    if (forth.rest != unlimited) forth.rest -= flow;
    if (back.rest != unlimited) back.rest += flow;
  }
  return true;
}

const std::vector<bool>& MinCut::solve(std::int32_t source, std::int32_t sink) {
  while (find_levels(source, sink)) {
    current_ = first_;
    while (augment(source, sink)) {
    }
  }
  // Vertices from which the sink can still be reached are on the sink's side of the cut.
  sink_side_.assign(first_.size(), false);
  sink_side_[static_cast<std::size_t>(sink)] = true;
  queue_.assign(1, sink);
  for (std::size_t at = 0; at < queue_.size(); ++at) {
    for (std::int32_t e = first_[static_cast<std::size_t>(queue_[at])]; e >= 0;
         e = edges_[static_cast<std::size_t>(e)].next) {
      const std::int32_t from = edges_[static_cast<std::size_t>(e)].to;
      if (sink_side_[static_cast<std::size_t>(from)] || edges_[static_cast<std::size_t>(e ^ 1)].rest == 0) continue;
      sink_side_[static_cast<std::size_t>(from)] = true;
      queue_.push_back(from);
    }
  }
  return sink_side_;
}

}  // namespace russet::graph
