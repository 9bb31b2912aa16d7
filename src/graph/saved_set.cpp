#include "graph/saved_set.h"

#include "ops/table.h"

namespace russet::graph {
namespace {

constexpr std::size_t most_known = 256;

bool is_recipe(const Node& node) {
  if (node.checkpoint() != 0) return node.in_checkpoint();
  switch (ops::row(node.op).family) {
    case ops::Family::elementwise:
    case ops::Family::movement:
    case ops::Family::random:
    case ops::Family::source: return true;
    default: return false;
  }
}

}  // namespace

/// The node's number; a new one when the node is seen for the first time.
std::int32_t SavedSet::meet(const NodeRef& node) {
  if (!node || node->materialised() || node->failed() || outputs_.find(node.get()) >= 0) return at_no_cost;
  const std::int32_t number = numbers_.number_of(node.get());
  if (static_cast<std::size_t>(number) == candidates_.size()) {
    candidates_.push_back({.node = node, .is_recipe = is_recipe(*node)});
  }
  return number;
}

/// Numbers the saved values and, where those may be recomputed, the values that they are computed from.
void SavedSet::visit(const std::vector<NodeRef>& outputs) {
  outputs_.clear();
  numbers_.clear();
  candidates_.clear();
  inputs_.clear();
  for (const NodeRef& output : outputs) outputs_.number_of(output.get());
  for (const NodeRef& saved : saved_) meet(saved);
  for (Candidate& candidate : candidates_) candidate.is_saved = true;
  const std::lock_guard lock(graph_mutex());
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    candidates_[i].first_input = static_cast<std::int32_t>(inputs_.size());
    if (!candidates_[i].is_recipe) continue;
    const NodeRef node = candidates_[i].node;
    for (const NodeRef& input : node->inputs()) {
      if (input) inputs_.push_back(meet(input));
    }
  }
}

std::span<const std::int32_t> SavedSet::inputs_of(std::size_t candidate) const {
  const auto begin = static_cast<std::size_t>(candidates_[candidate].first_input);
  const std::size_t end = candidate + 1 < candidates_.size()
                              ? static_cast<std::size_t>(candidates_[candidate + 1].first_input)
                              : inputs_.size();
  return std::span(inputs_).subspan(begin, end - begin);
}

std::uint64_t SavedSet::structure() const {
  std::uint64_t hash = 0;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15U + (hash >> 29); };
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    mix(candidates_[i].node->hash() + candidates_[i].is_saved);
    mix(candidates_[i].is_recipe * 2ULL + candidates_[i].node->in_checkpoint());
    for (const std::int32_t input : inputs_of(i)) mix(static_cast<std::uint64_t>(input));
  }
  return hash;
}

/// A node is two vertices with an edge between them: to keep it is to cut that edge.
void SavedSet::cut() {
  const auto count = static_cast<std::int32_t>(candidates_.size());
  const std::int32_t source = 2 * count, sink = source + 1;
  const auto before = [](std::int32_t node) { return 2 * node; };
  const auto behind = [](std::int32_t node) { return 2 * node + 1; };
  min_cut_.reset(2 * count + 2);
  for (std::int32_t i = 0; i < count; ++i) {
    const Candidate& candidate = candidates_[static_cast<std::size_t>(i)];
    const bool keepable = !candidate.node->in_checkpoint();
    const auto bytes = static_cast<std::int64_t>(byte_size(*candidate.node));
    min_cut_.add_edge(before(i), behind(i), keepable ? bytes : MinCut::unlimited);
    if (candidate.is_saved) min_cut_.add_edge(behind(i), sink, MinCut::unlimited);
    if (!candidate.is_recipe) min_cut_.add_edge(source, before(i), MinCut::unlimited);
    for (const std::int32_t input : inputs_of(static_cast<std::size_t>(i))) {
      if (input >= 0) min_cut_.add_edge(behind(input), before(i), MinCut::unlimited);
    }
  }
  const std::vector<bool>& sink_side = min_cut_.solve(source, sink);
  kept_.clear();
  for (std::int32_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(before(i));
    if (!sink_side[at] && sink_side[at + 1]) kept_.push_back(i);
  }
}

void SavedSet::choose(std::vector<NodeRef>& outputs) {
  if (saved_.empty()) return;
  visit(outputs);
  if (!candidates_.empty()) {
    const std::uint64_t key = structure();
    auto known = known_.find(key);
    if (known == known_.end()) {
      cut();
      if (known_.size() >= most_known) known_.clear();
      known = known_.emplace(key, kept_).first;
    }
    for (const std::int32_t kept : known->second) {
      if (static_cast<std::size_t>(kept) < candidates_.size())
        outputs.push_back(candidates_[static_cast<std::size_t>(kept)].node);
    }
  }
  candidates_.clear();
  saved_.clear();
}

}  // namespace russet::graph
