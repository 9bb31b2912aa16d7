#include "compile/cluster_order.h"

#include <algorithm>
#include <queue>

#include "compile/clusters.h"

namespace russet::compile {
namespace {

/// Edges that a question looks at. Most look at a few; a value of the forward pass and its reader in the backward pass
/// have half a model between them.
constexpr std::size_t most_effort = 4096;

}  // namespace

ClusterOrder::ClusterOrder(const Program& program) : program_(program), nodes_(program.clusters.size()) {
  for (std::size_t id = 0; id < nodes_.size(); ++id) find_edges(static_cast<std::int32_t>(id));
  number();
}

std::int32_t ClusterOrder::present(std::int32_t id) {
  while (node(id).whole >= 0) {
    const std::int32_t whole = node(id).whole;
    if (node(whole).whole >= 0) node(id).whole = node(whole).whole;  // halves the way for the next question
    id = whole;
  }
  return id;
}

void ClusterOrder::find_edges(std::int32_t id) {
  const Cluster& own = program_.clusters[static_cast<std::size_t>(id)];
  if (own.dead) return;
  std::vector<std::int32_t>& inputs = node(id).inputs;
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
  for (const std::int32_t input : inputs) node(input).readers.push_back(id);
}

/// As close to the clusters' own order as reads allow.
void ClusterOrder::number() {
  std::vector<std::size_t> waits(nodes_.size());
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ready;
  for (std::size_t id = 0; id < nodes_.size(); ++id) {
    waits[id] = nodes_[id].inputs.size();
    if (waits[id] == 0) ready.push(static_cast<std::int32_t>(id));
  }
  for (std::int32_t rank = 0; !ready.empty(); ++rank) {
    const std::int32_t id = ready.top();
    ready.pop();
    node(id).rank = rank;
    for (const std::int32_t reader : node(id).readers) {
      if (--waits[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
    }
  }
}

/// Goes from one end to the other and gathers what lies between. False if it gets there, or if that takes too long; a
/// direct edge leads there if it counts.
bool ClusterOrder::walk(Ends ends, Towards towards, bool direct_counts, std::vector<std::int32_t>& met) {
  const auto [from, to] =
      towards == Towards::first ? std::pair(ends.last, ends.first) : std::pair(ends.first, ends.last);
  const std::int32_t lowest = node(ends.first).rank;
  const std::int32_t highest = node(ends.last).rank;
  ++round_;
  met.clear();
  stack_.assign(1, from);
  while (!stack_.empty()) {
    const std::int32_t at = stack_.back();
    stack_.pop_back();
    for (const std::int32_t name : towards == Towards::first ? node(at).inputs : node(at).readers) {
      if (++effort_ > most_effort) return false;
      const std::int32_t next = present(name);
      if (next == to && (at != from || direct_counts)) return false;
      Node& neighbour = node(next);
      if (neighbour.rank <= lowest || neighbour.rank >= highest || neighbour.seen == round_) continue;
      neighbour.seen = round_;
      met.push_back(next);
      stack_.push_back(next);
    }
  }
  return true;
}

bool ClusterOrder::can_merge(std::int32_t a, std::int32_t b) {
  const Ends ends = node(a).rank < node(b).rank ? Ends{a, b} : Ends{b, a};
  effort_ = 0;
  return walk(ends, Towards::first, false, needed_) &&
         (needed_.empty() || walk(ends, Towards::last, false, dependent_));
}

void ClusterOrder::merge(std::int32_t whole, std::int32_t part) {
  const auto [first, last] = node(whole).rank < node(part).rank ? Ends{whole, part} : Ends{part, whole};
  if (needed_.empty()) {
    node(whole).rank = node(first).rank;
  } else {
    renumber(first, last);
  }
  Node& own = node(whole);
  Node& gone = node(part);
  gone.whole = whole;
  for (auto edges : {&Node::inputs, &Node::readers}) {
    if ((own.*edges).size() < (gone.*edges).size()) std::swap(own.*edges, gone.*edges);
    (own.*edges).insert((own.*edges).end(), (gone.*edges).begin(), (gone.*edges).end());
    gone.*edges = {};
  }
}

bool ClusterOrder::reaches(std::int32_t from, std::int32_t to) {
  if (node(from).rank >= node(to).rank) return false;
  effort_ = 0;
  return !walk({from, to}, Towards::first, true, needed_) || !walk({from, to}, Towards::last, true, dependent_);
}

void ClusterOrder::order(std::int32_t before, std::int32_t after) {
  if (node(before).rank > node(after).rank) renumber(before, after);
  node(after).inputs.push_back(before);
  node(before).readers.push_back(after);
}

/// What the last question met, and its two clusters, get the ranks that they have in another order.
void ClusterOrder::renumber(std::int32_t earlier, std::int32_t later) {
  const auto by_rank = [&](std::int32_t a, std::int32_t b) { return node(a).rank < node(b).rank; };
  std::sort(needed_.begin(), needed_.end(), by_rank);
  std::sort(dependent_.begin(), dependent_.end(), by_rank);
  sequence_ = needed_;
  sequence_.push_back(earlier);
  sequence_.push_back(later);
  sequence_.insert(sequence_.end(), dependent_.begin(), dependent_.end());
  ranks_.clear();
  for (const std::int32_t id : sequence_) ranks_.push_back(node(id).rank);
  std::sort(ranks_.begin(), ranks_.end());
  for (std::size_t i = 0; i < sequence_.size(); ++i) node(sequence_[i]).rank = ranks_[i];
}

}  // namespace russet::compile
