#pragma once
// ClusterOrder: the clusters of a program, each after those that it reads, while passes merge them.
#include <vector>

#include "compile/program.h"

namespace russet::compile {

/// A topological order that is kept as clusters merge and come to wait for each other: only the clusters between the
/// two that are concerned are looked at (Pearce, Kelly, "A dynamic topological sort algorithm for directed acyclic
/// graphs", 2006). A question that would take too long is answered as if there were a path.
class ClusterOrder {
 public:
  explicit ClusterOrder(const Program& program);

  /// Whether two clusters can become one: no path leads from one to the other but a direct read.
  bool can_merge(std::int32_t a, std::int32_t b);
  /// Says that `part` has become part of `whole`. The last question was can_merge() of the two, and the answer yes.
  void merge(std::int32_t whole, std::int32_t part);
  /// Whether a path leads from one to another.
  bool reaches(std::int32_t from, std::int32_t to);
  /// Says that `after` waits for `before`, of which it reads nothing. The last question was reaches(after, before), and
  /// the answer no.
  void order(std::int32_t before, std::int32_t after);

 private:
  struct Vertex {
    std::int32_t whole = -1;  // the cluster that this one has become part of
    std::int32_t rank = 0;
    std::uint32_t seen = 0;
    std::vector<std::int32_t> inputs, readers;  // by former names, some twice
  };
  /// Two clusters, the one of the lower rank first.
  struct Ends {
    std::int32_t first, last;
  };
  enum class Towards : std::uint8_t { first, last };

  Vertex& vertex(std::int32_t id) { return vertices_[static_cast<std::size_t>(id)]; }
  std::int32_t present(std::int32_t id);
  void find_edges(std::int32_t id);
  void number();
  bool walk(Ends ends, Towards towards, bool direct_counts, std::vector<std::int32_t>& met);
  void renumber(std::int32_t earlier, std::int32_t later);

  const Program& program_;
  std::vector<Vertex> vertices_;
  std::uint32_t round_ = 0;
  std::size_t effort_ = 0;  // edges that the question has looked at
  /// What the last question met between its two clusters: what the later one needs, and what needs the earlier one.
  std::vector<std::int32_t> needed_, dependent_;
  std::vector<std::int32_t> stack_, sequence_, ranks_;  // scratch
};

}  // namespace russet::compile
