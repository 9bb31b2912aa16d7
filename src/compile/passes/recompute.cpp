// Recomputation: a value that is cheaper to compute again than to store and load is computed in each group that reads
// it, from what is in memory anyway.
//   group 1: h -> e = erf(h); y = h * e; store y, e        group 1: h -> e = erf(h); y = h * e; store y
//   group 2: load g, h, e -> ...                       =>  group 2: load g, h; e = erf(h) -> ...
#include <algorithm>
#include <optional>
#include <set>

#include "compile/clusters.h"
#include "compile/passes/passes.h"
#include "ops/table.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// What an operator costs per element, in bytes that memory would move in the same time (measured: about 10 bytes a
/// nanosecond and core; a vector exp about a nanosecond).
double cost_of(const Value& value) {
  switch (value.op) {
    case Op::uniform:
    case Op::normal:
    case Op::random_bits: return 32;
    case Op::exp:
    case Op::expm1:
    case Op::log:
    case Op::log1p:
    case Op::sin:
    case Op::cos:
    case Op::tan:
    case Op::tanh:
    case Op::erf:
    case Op::sigmoid:
    case Op::pow:
    case Op::sinh:
    case Op::cosh:
    case Op::asin:
    case Op::acos:
    case Op::atan:
    case Op::atan2: return 6;
    case Op::sqrt:
    case Op::rsqrt:
    case Op::div: return 2;
    default: return 0.75;
  }
}

constexpr std::size_t longest_recipe = 16;

class Recompute {
 public:
  Recompute(Program& program, const Target& target) : program_(program), target_(target) {
    in_memory_.assign(program.values.size(), false);
    pinned_.assign(program.values.size(), false);
    for (const Leaf& leaf : program.leaves) in_memory_[static_cast<std::size_t>(leaf.value)] = true;
    for (const Cluster& cluster : program.clusters) {
      for (const ValueId stored : cluster.stores) in_memory_[static_cast<std::size_t>(stored)] = true;
    }
    for (const Output& output : program.outputs) pinned_[static_cast<std::size_t>(output.value)] = true;
    find_readers();
  }

  void run() {
    for (std::size_t id = program_.values.size(); id-- > 0;) {
      if (in_memory_[id] && !pinned_[id] && program_.owner[id] >= 0 && is_pointwise(program_.values[id])) {
        consider(static_cast<ValueId>(id));
      }
    }
    for (Cluster& cluster : program_.clusters) {
      if (cluster.stores.empty()) cluster.dead = true;
      if (!cluster.dead && cluster.kind == Cluster::Kind::group) drop_unused(cluster);
    }
  }

 private:
  Cluster& cluster(std::int32_t id) { return program_.clusters[static_cast<std::size_t>(id)]; }

  void find_readers() {
    readers_.assign(program_.values.size(), {});
    for (std::size_t id = 0; id < program_.clusters.size(); ++id) {
      const Cluster& own = program_.clusters[id];
      if (own.dead) continue;
      for (const ValueId member : own.members) {
        for (const ValueId input : value_at(program_, member).inputs) {
          if (input < 0) continue;
          const ValueId base = base_of(program_, input);
          const auto at = static_cast<std::size_t>(base);
          if (own.kind == Cluster::Kind::primitive || base != input) pinned_[at] = true;
          if (program_.owner[at] != static_cast<std::int32_t>(id)) readers_[at].insert(static_cast<std::int32_t>(id));
        }
      }
    }
  }

  struct Recipe {
    std::vector<ValueId> members;  // what has to be computed, the value itself among it
    double bytes = 0;              // what has to be loaded besides what the reader loads
  };

  /// How `reader` could compute the value; nothing if it cannot.
  std::optional<Recipe> recipe_for(ValueId id, const Cluster& reader, double budget) const {
    Recipe recipe;
    std::vector<ValueId> stack{id};
    std::set<ValueId> seen{id};
    while (!stack.empty()) {
      const ValueId next = stack.back();
      stack.pop_back();
      const Value& value = value_at(program_, next);
      const Fit fits = fit(value.shape, reader);
      if (fits == Fit::none || recipe.members.size() >= longest_recipe) return std::nullopt;
      recipe.members.push_back(next);
      recipe.bytes += cost_of(value) * static_cast<double>(numel(value.shape));
      for (const ValueId input : value.inputs) {
        if (input < 0 || !seen.insert(input).second || is_free(value_at(program_, input))) continue;
        if (std::binary_search(reader.members.begin(), reader.members.end(), input)) continue;
        const ValueId base = base_of(program_, input);
        if (in_memory_[static_cast<std::size_t>(base)] && input != id) {
          if (!loads(reader, base)) recipe.bytes += static_cast<double>(byte_size(value_at(program_, input)));
        } else if (base == input && is_pointwise(value_at(program_, input))) {
          stack.push_back(input);
        } else {
          return std::nullopt;
        }
      }
      if (recipe.bytes > budget) return std::nullopt;
    }
    return recipe;
  }

  bool loads(const Cluster& reader, ValueId base) const {
    for (const ValueId member : reader.members) {
      for (const ValueId input : value_at(program_, member).inputs) {
        if (input >= 0 && base_of(program_, input) == base) return true;
      }
    }
    return false;
  }

  static void add_members(Cluster& reader, const Recipe& recipe) {
    auto& members = reader.members;
    members.insert(members.end(), recipe.members.begin(), recipe.members.end());
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
  }

  void consider(ValueId id) {
    const auto at = static_cast<std::size_t>(id);
    const auto bytes = static_cast<double>(byte_size(value_at(program_, id)));
    double budget = bytes * static_cast<double>(1 + readers_[at].size());
    std::vector<std::pair<std::int32_t, Recipe>> plans;
    for (const std::int32_t reader : readers_[at]) {
      const auto recipe = recipe_for(id, cluster(reader), budget);
      if (!recipe) return;
      budget -= recipe->bytes;
      plans.emplace_back(reader, *recipe);
    }
    if (plans.empty() || budget < 0) return;
    for (const auto& [reader, recipe] : plans) {
      Cluster grown = cluster(reader);
      add_members(grown, recipe);
      if (grown.members.size() > 512 || !is_runnable(program_, grown, target_)) return;
    }
    for (const auto& [reader, recipe] : plans) apply(reader, recipe);
    in_memory_[at] = false;
    auto& stores = cluster(program_.owner[at]).stores;
    stores.erase(std::find(stores.begin(), stores.end(), id));
  }

  void apply(std::int32_t reader, const Recipe& recipe) {
    Cluster& own = cluster(reader);
    add_members(own, recipe);
    for (const ValueId member : recipe.members) {
      for (const ValueId input : value_at(program_, member).inputs) {
        if (input < 0) continue;
        const auto base = static_cast<std::size_t>(base_of(program_, input));
        if (program_.owner[base] != reader) readers_[base].insert(reader);
      }
    }
  }

  /// Members that no store needs any more go.
  void drop_unused(Cluster& own) {
    std::set<ValueId> needed(own.stores.begin(), own.stores.end());
    for (std::size_t i = own.members.size(); i-- > 0;) {
      if (!needed.count(own.members[i])) continue;
      for (const ValueId input : value_at(program_, own.members[i]).inputs) {
        if (input >= 0) needed.insert(input);
      }
    }
    std::erase_if(own.members, [&](ValueId member) { return !needed.count(member); });
  }

  Program& program_;
  const Target& target_;
  std::vector<bool> in_memory_;
  std::vector<bool> pinned_;                     // must stay in memory: outputs, what primitives or views read
  std::vector<std::set<std::int32_t>> readers_;  // other clusters that read each value
};

}  // namespace

void recompute(Program& program, const Target& target) { Recompute(program, target).run(); }

}  // namespace russet::compile::passes
