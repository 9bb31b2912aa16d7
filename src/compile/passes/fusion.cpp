#include "compile/passes/fusion.h"

#include <algorithm>

#include "compile/failure.h"

namespace russet::compile::passes {
namespace {

constexpr std::size_t most_members = 512;

void merge_into(std::vector<ValueId>& sorted, const std::vector<ValueId>& more) {
  const auto middle = static_cast<std::ptrdiff_t>(sorted.size());
  sorted.insert(sorted.end(), more.begin(), more.end());
  std::inplace_merge(sorted.begin(), sorted.begin() + middle, sorted.end());
}

}  // namespace

Fusion::Fusion(Program& program, const Target& target)
    : program_(program), target_(target), order_(program), readers_(program, Readers::Views::read) {
  summaries_.reserve(program.clusters.size());
  for (const Cluster& own : program.clusters) summaries_.push_back(summary_of(own));
}

/// Of a cluster of one member.
Fusion::Summary Fusion::summary_of(const Cluster& own) const {
  Summary made;
  if (own.kind != Cluster::Kind::group) return made;
  const ValueId member = own.members.front();
  const Value& value = value_at(program_, member);
  made.loads = loads_of(program_, own);
  for (const ValueId read : reads_of(program_, own)) {
    const ValueId base = base_of(program_, read);
    if (base != read || is_view(value)) made.viewed.push_back(base);
  }
  std::sort(made.viewed.begin(), made.viewed.end());
  made.stored = readers_.read_outside(member, 0, [](ValueId) { return false; }) ? 1 : 0;
  made.reduces = is_reduction(value);
  made.fails = may_fail(program_, value, target_);
  made.computed = is_computed_by(program_, value, target_);
  made.again = value.again;
  return made;
}

void Fusion::merge_along_reads() {
  for (std::size_t id = 0; id < program_.values.size(); ++id) {
    const std::int32_t own = program_.owner[id];
    if (own < 0 || cluster(own).kind != Cluster::Kind::group) continue;
    for (const ValueId input : program_.values[id].inputs) {
      if (input < 0) continue;
      const std::int32_t other = owner(input);
      // What is computed again for backward must not be computed early, with what it reads.
      const bool early = program_.values[id].again && other >= 0 && !summary(other).again;
      if (other >= 0 && !early) try_merge(other, program_.owner[id]);
    }
  }
}

void Fusion::merge_siblings() {
  const Readers readers(program_, Readers::Views::looked_through);
  for (std::size_t id = 0; id < program_.values.size(); ++id) {
    const Value& value = program_.values[id];
    if (is_free(value) || numel(value.shape) <= 1) continue;
    const std::span<const ValueId> all = readers.of(static_cast<ValueId>(id));
    for (std::size_t i = 1; i < all.size(); ++i) {
      const std::int32_t a = owner(all[i - 1]);
      const std::int32_t b = owner(all[i]);
      const bool both = a >= 0 && b >= 0 && a != b && summary(a).again == summary(b).again;
      if (both && fit(value.shape, cluster(a)) == Fit::full) try_merge(a, b);
    }
  }
}

void Fusion::try_merge(std::int32_t a, std::int32_t b) {
  if (a == b || cluster(a).kind != Cluster::Kind::group || cluster(b).kind != Cluster::Kind::group) return;
  if (cluster(a).members.size() + cluster(b).members.size() > most_members) return;
  if (summary(a).fails || summary(b).fails || summary(a).computed != summary(b).computed) return;
  std::optional<IterationSpace> space = common_space(cluster(a), cluster(b));
  if (!space || views_meet(a, b) || views_meet(b, a)) return;
  Union both = unite(a, b);
  if (!is_runnable_as_one(a, b, *space, both) || !order_.can_merge(a, b)) return;
  const bool a_larger = cluster(a).members.size() >= cluster(b).members.size();
  merge(a_larger ? a : b, a_larger ? b : a, *space, std::move(both));
}

std::optional<Fusion::IterationSpace> Fusion::common_space(const Cluster& a, const Cluster& b) {
  const bool a_larger = numel(a.space) >= numel(b.space);
  const Cluster& large = a_larger ? a : b;
  const Cluster& small = a_larger ? b : a;
  if (large.space == small.space) {
    if (large.reduced && small.reduced && large.reduced != small.reduced) return std::nullopt;
    return IterationSpace{large.space, large.reduced | small.reduced};
  }
  if (numel(large.space) == 0) return std::nullopt;
  // The smaller one lives on what the reductions give.
  if (small.reduced || !large.reduced || fit(small.space, large) != Fit::reduced) return std::nullopt;
  return IterationSpace{large.space, large.reduced};
}

/// Whether a group reads, through a view, what another one computes: it would have to read memory that it has not
/// written yet.
bool Fusion::views_meet(std::int32_t reader, std::int32_t computer) const {
  const std::vector<ValueId>& viewed = summary(reader).viewed;
  return std::any_of(viewed.begin(), viewed.end(), [&](ValueId base) { return owner(base) == computer; });
}

Fusion::Union Fusion::unite(std::int32_t a, std::int32_t b) const {
  Union both;
  both.stored = summary(a).stored + summary(b).stored;
  const std::size_t members = cluster(a).members.size() + cluster(b).members.size();
  const auto is_inside = [&](ValueId reader) { return owner(reader) == a || owner(reader) == b; };
  const auto take_loads = [&](std::int32_t reader, std::int32_t other) {
    const auto middle = static_cast<std::ptrdiff_t>(both.loads.size());
    for (const ValueId load : summary(reader).loads) {
      if (owner(load) != other) {
        both.loads.push_back(load);
      } else if (!readers_.read_outside(load, members, is_inside)) {
        --both.stored;
      }
    }
    std::inplace_merge(both.loads.begin(), both.loads.begin() + middle, both.loads.end());
  };
  take_loads(a, b);
  take_loads(b, a);
  both.loads.erase(std::unique(both.loads.begin(), both.loads.end()), both.loads.end());
  return both;
}

bool Fusion::is_runnable_as_one(std::int32_t a, std::int32_t b, const IterationSpace& space, const Union& both) const {
  const auto members = cluster(a).members.size() + cluster(b).members.size();
  if (!summary(a).reduces && !summary(b).reduces) {
    const int most = target_.max_accesses();
    const int loads = static_cast<int>(both.loads.size());
    return loads + static_cast<int>(members) <= most || loads + both.stored <= most;
  }
  Cluster merged;
  merged.space = space.sizes;
  merged.reduced = space.reduced;
  merged.members.reserve(members);
  std::merge(cluster(a).members.begin(), cluster(a).members.end(), cluster(b).members.begin(), cluster(b).members.end(),
             std::back_inserter(merged.members));
  return is_runnable(program_, readers_, merged, target_);
}

void Fusion::merge(std::int32_t whole, std::int32_t part, IterationSpace space, Union both) {
  order_.merge(whole, part);
  Cluster& own = cluster(whole);
  Cluster& gone = cluster(part);
  own.space = space.sizes;
  own.reduced = space.reduced;
  for (const ValueId member : gone.members) program_.owner[static_cast<std::size_t>(member)] = whole;
  merge_into(own.members, gone.members);
  gone = {};
  gone.dead = true;
  Summary& said = summary(whole);
  said.loads = std::move(both.loads);
  said.stored = both.stored;
  said.reduces |= summary(part).reduces;
  said.again |= summary(part).again;
  merge_into(said.viewed, summary(part).viewed);
  said.viewed.erase(std::unique(said.viewed.begin(), said.viewed.end()), said.viewed.end());
  summary(part) = {};
}

}  // namespace russet::compile::passes
