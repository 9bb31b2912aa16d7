#include "compile/cluster_order.h"

#include <algorithm>
#include <queue>

#include "compile/clusters.h"

namespace russet::compile {
namespace {

/// The most edges that one query visits. Most visit a few, but between a value of the forward pass and its reader in
/// the backward pass may lie half of the model.
constexpr std::size_t most_effort = 4096;

}  // namespace

ClusterOrder::ClusterOrder(const Program& program) : program_(program), vertices_(program.clusters.size()) {
  for (std::size_t id = 0; id < vertices_.size(); ++id) find_edges(static_cast<std::int32_t>(id));
  number();
}

std::int32_t ClusterOrder::present(std::int32_t id) {
  while (vertex(id).whole >= 0) {
    const std::int32_t whole = vertex(id).whole;
    if (vertex(whole).whole >= 0) vertex(id).whole = vertex(whole).whole;  // path halving, as in union-find
    id = whole;
  }
  return id;
}

void ClusterOrder::find_edges(std::int32_t id) {
  const Cluster& own = program_.clusters[static_cast<std::size_t>(id)];
  if (own.dead) return;
  std::vector<std::int32_t>& inputs = vertex(id).inputs;
  const auto add = [&](ValueId read) {
    const std::int32_t owner = program_.owner[static_cast<std::size_t>(base_of(program_, read))];
    if (owner >= 0 && owner != id) inputs.push_back(owner);
  };
  // A group may compute a value itself that another one owns.
  for (const ValueId member : own.members) {
    for (const ValueId input : value_at(program_, member).inputs) {
      if (input >= 0 && !is_member(own, input)) add(input);
    }
  }
  for (const std::int32_t part : {own.epilogue, own.prologues[0], own.prologues[1]}) {
    if (part < 0) continue;
    for (const ValueId read : reads_of(program_, program_.clusters[static_cast<std::size_t>(part)])) add(read);
  }
  std::sort(inputs.begin(), inputs.end());
  inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
  for (const std::int32_t input : inputs) vertex(input).readers.push_back(id);
}

/// A topological order: of the clusters whose inputs have ranks, the one with the lowest number comes next.
void ClusterOrder::number() {
  std::vector<std::size_t> waits(vertices_.size());
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ready;
  for (std::size_t id = 0; id < vertices_.size(); ++id) {
    waits[id] = vertices_[id].inputs.size();
    if (waits[id] == 0) ready.push(static_cast<std::int32_t>(id));
  }
  for (std::int32_t rank = 0; !ready.empty(); ++rank) {
    const std::int32_t id = ready.top();
    ready.pop();
    vertex(id).rank = rank;
    for (const std::int32_t reader : vertex(id).readers) {
      if (--waits[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
    }
  }
}

/// Searches from one end towards the other and gathers the clusters met on the way. Returns false if it reaches the
/// other end, or visits too many edges. `direct_counts`: whether a direct edge between the two counts as reaching it.
bool ClusterOrder::walk(Ends ends, Towards towards, bool direct_counts, std::vector<std::int32_t>& met) {
  const auto [from, to] =
      towards == Towards::first ? std::pair(ends.last, ends.first) : std::pair(ends.first, ends.last);
  const std::int32_t lowest = vertex(ends.first).rank;
  const std::int32_t highest = vertex(ends.last).rank;
  ++round_;
  met.clear();
  stack_.assign(1, from);
  while (!stack_.empty()) {
    const std::int32_t at = stack_.back();
    stack_.pop_back();
    for (const std::int32_t name : towards == Towards::first ? vertex(at).inputs : vertex(at).readers) {
      if (++effort_ > most_effort) return false;
      const std::int32_t next = present(name);
      if (next == to && (at != from || direct_counts)) return false;
      Vertex& neighbour = vertex(next);
      if (neighbour.rank <= lowest || neighbour.rank >= highest || neighbour.seen == round_) continue;
      neighbour.seen = round_;
      met.push_back(next);
      stack_.push_back(next);
    }
  }
  return true;
}

bool ClusterOrder::can_merge(std::int32_t a, std::int32_t b) {
  const Ends ends = vertex(a).rank < vertex(b).rank ? Ends{a, b} : Ends{b, a};
  effort_ = 0;
  return walk(ends, Towards::first, false, needed_) &&
         (needed_.empty() || walk(ends, Towards::last, false, dependent_));
}

void ClusterOrder::merge(std::int32_t whole, std::int32_t part) {
  const auto [first, last] = vertex(whole).rank < vertex(part).rank ? Ends{whole, part} : Ends{part, whole};
  if (needed_.empty()) {
    vertex(whole).rank = vertex(first).rank;
  } else {
    renumber(first, last);
  }
  Vertex& own = vertex(whole);
  Vertex& gone = vertex(part);
  gone.whole = whole;
  for (auto edges : {&Vertex::inputs, &Vertex::readers}) {
    if ((own.*edges).size() < (gone.*edges).size()) std::swap(own.*edges, gone.*edges);
    (own.*edges).insert((own.*edges).end(), (gone.*edges).begin(), (gone.*edges).end());
    gone.*edges = {};
  }
}

bool ClusterOrder::reaches(std::int32_t from, std::int32_t to) {
  if (vertex(from).rank >= vertex(to).rank) return false;
  effort_ = 0;
  return !walk({from, to}, Towards::first, true, needed_) || !walk({from, to}, Towards::last, true, dependent_);
}

void ClusterOrder::order(std::int32_t before, std::int32_t after) {
  if (vertex(before).rank > vertex(after).rank) renumber(before, after);
  vertex(after).inputs.push_back(before);
  vertex(before).readers.push_back(after);
}

/// What the last question met, and its two clusters, get the ranks that they have in another order.
void ClusterOrder::renumber(std::int32_t earlier, std::int32_t later) {
  const auto by_rank = [&](std::int32_t a, std::int32_t b) { return vertex(a).rank < vertex(b).rank; };
  std::sort(needed_.begin(), needed_.end(), by_rank);
  std::sort(dependent_.begin(), dependent_.end(), by_rank);
  sequence_ = needed_;
  sequence_.push_back(earlier);
  sequence_.push_back(later);
  sequence_.insert(sequence_.end(), dependent_.begin(), dependent_.end());
  ranks_.clear();
  for (const std::int32_t id : sequence_) ranks_.push_back(vertex(id).rank);
  std::sort(ranks_.begin(), ranks_.end());
  for (std::size_t i = 0; i < sequence_.size(); ++i) vertex(sequence_[i]).rank = ranks_[i];
}

}  // namespace russet::compile
