#pragma once
// A cut of least capacity through a directed graph.
#include <cstdint>
#include <limits>
#include <vector>

namespace russet::graph {

/// Finds a maximum flow, and so a minimum cut (Dinic, "Algorithm for solution of a problem of maximum flow in networks
/// with power estimation", 1970). Keeps its memory from problem to problem.
class MinCut {
 public:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  /// Starts a new problem of vertices 0 ... count - 1.
  void reset(std::int32_t count);
  /// An edge of capacity >= 0.
  void add_edge(std::int32_t from, std::int32_t to, std::int64_t capacity);
  /// Cuts `sink` off from `source`; every path between them must hold an edge of limited capacity. For each vertex
  /// whether it is on the sink's side of the minimum cut that lies nearest to the sink.
  const std::vector<bool>& solve(std::int32_t source, std::int32_t sink);

 private:
  struct Edge {
    std::int32_t to;
    std::int32_t next;  // of the same vertex, or -1
    std::int64_t rest;  // capacity that is left; the reverse edge is the neighbour (index ^ 1)
  };

  bool find_levels(std::int32_t source, std::int32_t sink);
  bool augment(std::int32_t source, std::int32_t sink);

  std::vector<Edge> edges_;
  std::vector<std::int32_t> first_, current_, level_, queue_, path_;
  std::vector<bool> sink_side_;
};

}  // namespace russet::graph
