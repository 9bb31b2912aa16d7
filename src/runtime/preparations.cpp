#include "runtime/preparations.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "graph/keeping.h"

namespace russet::runtime {
namespace {

/// Several models, each in a few precisions.
constexpr std::size_t most_kept = 32;

bool is_alike(const compile::Slot& a, const compile::Slot& b) {
  return a.kind == b.kind && a.index == b.index && a.bytes == b.bytes && a.offset == b.offset;
}

/// Whether two preparations compute the same from the same leaves, by number.
bool is_alike(const compile::Plan& a, const compile::Plan& b) {
  return a.program.steps == b.program.steps && a.program.arena_bytes == b.program.arena_bytes &&
         std::ranges::equal(a.program.slots, b.program.slots,
                            [](const auto& one, const auto& other) { return is_alike(one, other); });
}

}  // namespace

/// Results until somebody lets go of them; whoever has taken them has them still.
class Preparations::Kept final : public RefCounted {
 public:
  explicit Kept(Results results) : results_(std::move(results)) {}
  Results results() const {
    const std::lock_guard lock(mutex_);
    return results_;
  }
  bool is_gone() const {
    const std::lock_guard lock(mutex_);
    return results_.empty();
  }
  void let_go() {
    Results gone;  // destroyed once the lock is free
    const std::lock_guard lock(mutex_);
    gone.swap(results_);
  }

 private:
  mutable std::mutex mutex_;
  Results results_;
};

/// What a source holds: it is destroyed with the source's value.
class Preparations::Tie final : public graph::Keepsake {
 public:
  explicit Tie(Ref<Kept> kept) : kept_(std::move(kept)) {}
  ~Tie() override { kept_->let_go(); }
  bool is_over() const override { return kept_->is_gone(); }

 private:
  Ref<Kept> kept_;
};

Preparations::PlanPtr Preparations::shared(const PlanPtr& preparation, std::uint64_t environment) {
  std::erase_if(known_, [](const Known& known) { return known.preparation.expired(); });
  for (const Known& known : known_) {
    PlanPtr other = known.preparation.lock();
    if (other && known.environment == environment && is_alike(*other, *preparation)) return other;
  }
  known_.push_back({preparation, environment});
  return preparation;
}

Preparations::Results Preparations::find(const compile::Plan& preparation, const Sources& sources) {
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->preparation.get() != &preparation || entry->sources != sources) continue;
    Results results = entry->kept->results();
    if (results.empty()) {
      entries_.erase(entry);
    } else {
      entries_.splice(entries_.begin(), entries_, entry);
    }
    return results;
  }
  return {};
}

void Preparations::keep(const PlanPtr& preparation, Sources sources, Results results) {
  std::erase_if(entries_, [](const Entry& entry) { return entry.kept->is_gone(); });
  if (!std::ranges::all_of(sources.values, [](const graph::Node* value) { return graph::is_steady(*value); })) return;
  auto kept = make_ref<Kept>(std::move(results));
  for (const graph::Node* value : sources.values) graph::keep_with(*value, make_ref<Tie>(kept));
  entries_.push_front({preparation, std::move(sources), std::move(kept)});
  while (entries_.size() > most_kept) {
    entries_.back().kept->let_go();
    entries_.pop_back();
  }
}

bool Preparations::clear() {
  bool any = false;
  for (const Entry& entry : entries_) {
    any |= !entry.kept->is_gone();
    entry.kept->let_go();
  }
  entries_.clear();
  return any;
}

std::size_t Preparations::bytes() const {
  std::size_t bytes = 0;
  for (const Entry& entry : entries_) {
    for (const Ref<graph::Buffer>& buffer : entry.kept->results()) bytes += buffer->bytes();
  }
  return bytes;
}

}  // namespace russet::runtime
