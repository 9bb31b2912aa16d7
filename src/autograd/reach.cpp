#include "autograd/reach.h"

#include <algorithm>
#include <unordered_set>

namespace russet::autograd {
namespace {

/// Whether a result of the entry is wanted.
bool is_wanted(const Wanted& wanted, const TapeEntry* entry) {
  const auto found = wanted.lower_bound({entry, 0});
  return found != wanted.end() && found->first.first == entry;
}

/// All entries that gradients may reach.
std::vector<const TapeEntry*> reached_from(std::span<const Edge> starts) {
  std::vector<const TapeEntry*> reached;
  std::unordered_set<const TapeEntry*> known;
  const auto reach = [&](const Edge& edge) {
    if (edge.entry && known.insert(edge.entry.get()).second) reached.push_back(edge.entry.get());
  };
  for (const Edge& start : starts) reach(start);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const Edge& input : reached[i]->inputs()) reach(input);
  }
  return reached;
}

}  // namespace

Place place_of(const Edge& edge) {
  if (edge.leaf) return {edge.leaf.get(), 0};
  return {edge.entry.get(), edge.result};
}

Leading::Leading(std::span<const Edge> starts, const Wanted& wanted) {
  std::vector<const TapeEntry*> reached = reached_from(starts);
  // Inputs first.
  std::sort(reached.begin(), reached.end(),
            [](const TapeEntry* a, const TapeEntry* b) { return a->sequence() < b->sequence(); });
  for (const TapeEntry* entry : reached) {
    const bool leads_on = std::any_of(entry->inputs().begin(), entry->inputs().end(), [&](const Edge& input) {
      return input.leaf ? wanted.contains(place_of(input)) : input.entry && leads(input.entry.get());
    });
    ways_[entry] = leads_on ? Way::on : is_wanted(wanted, entry) ? Way::ends : Way::none;
  }
}

void HookedLeaves::find(std::span<const Edge> starts, const Leading* leading) {
  for (const Edge& start : starts) count(start);
  for (const TapeEntry* entry : reached_from(starts)) {
    if (leading && !leading->leads_on(entry)) continue;
    for (const Edge& input : entry->inputs()) count(input);
  }
}

void HookedLeaves::count(const Edge& edge) {
  if (!edge.leaf) return;
  if (Arriving* known = at(edge)) {
    ++known->edges_left;
  } else if (std::shared_ptr<LeafHooks> hooks = edge.leaf->leaf_hooks()) {
    numbers_.number_of(edge.leaf.get());
    leaves_.push_back({edge.leaf, std::move(hooks), 1, {}});
  }
}

}  // namespace russet::autograd
