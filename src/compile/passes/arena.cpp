// Arena: every temporary gets a fixed place, so that those that live at the same time do not overlap and the whole is
// small. Largest first, each at the lowest gap that fits (the "greedy by size" of Pisarchyk and Lee, "Efficient memory
// management for deep neural net inference", 2020). On a device that runs steps at once which do not need each other,
// temporaries of such steps do not overlap either, as long as the arena stays small: a step that writes where another
// one has read would have to wait for it.
#include <algorithm>

#include "compile/passes/donation.h"
#include "compile/passes/passes.h"
#include "compile/passes/spans.h"
#include "compile/passes/step_order.h"

namespace russet::compile::passes {
namespace {

constexpr std::size_t alignment = 64;
/// Of a program whose temporaries lie apart: which steps wait for which is found in time that grows with their square.
constexpr std::size_t most_steps = 2048;

/// Bytes of the arena that a placed span takes.
struct Range {
  std::size_t begin, end;
};

/// The ranges of spans that live at the same time as another: a tree over the steps, in which each span is kept at the
/// few nodes that together make up its life.
class Alive {
 public:
  explicit Alive(std::size_t steps) {
    while (leaves_ < steps) leaves_ *= 2;
    covering_.resize(2 * leaves_);
    beginning_.resize(leaves_);
  }

  void add(const Span& span) {
    const Range range{span.offset, span.offset + span.bytes};
    beginning_[static_cast<std::size_t>(span.first)].push_back(range);
    auto low = leaves_ + static_cast<std::size_t>(span.first);
    for (auto high = leaves_ + static_cast<std::size_t>(span.last) + 1; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) covering_[low++].push_back(range);
      if (high % 2 == 1) covering_[--high].push_back(range);
    }
  }

  /// Finds the spans that overlap `span`: alive when it begins, or beginning before it ends.
  void find(const Span& span, std::vector<Range>& found) const {
    found.clear();
    const auto add = [&](const std::vector<Range>& more) { found.insert(found.end(), more.begin(), more.end()); };
    for (auto at = leaves_ + static_cast<std::size_t>(span.first); at > 0; at /= 2) add(covering_[at]);
    for (auto step = span.first + 1; step <= span.last; ++step) add(beginning_[static_cast<std::size_t>(step)]);
  }

 private:
  std::size_t leaves_ = 1;
  std::vector<std::vector<Range>> covering_, beginning_;
};

std::size_t place(std::vector<Span>& spans, auto placed) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.first < b.first; });
  std::size_t total = 0;
  std::vector<Range> others;
  for (Span& span : spans) {
    placed.find(span, others);
    std::sort(others.begin(), others.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::size_t offset = 0;
    for (const Range& other : others) {
      if (other.begin >= offset + span.bytes) break;
      offset = std::max(offset, (other.end + alignment - 1) / alignment * alignment);
    }
    span.offset = offset;
    total = std::max(total, offset + span.bytes);
    placed.add(span);
  }
  return (total + alignment - 1) / alignment * alignment;
}

/// The ranges of spans which live at the same time as another, or could: where neither begins with a step that waits
/// for all that touch the other one.
class ThatCouldLive {
 public:
  explicit ThatCouldLive(const Program& program) : order_(program), touching_(program.slots.size()) {
    for (std::size_t step = 0; step < program.steps.size(); ++step) {
      for_each_access(program.steps[step], [&](std::int32_t slot, bool) {
        std::vector<std::size_t>& steps = touching_[static_cast<std::size_t>(slot)];
        if (steps.empty() || steps.back() != step) steps.push_back(step);
      });
    }
  }

  void add(const Span& span) { placed_.push_back(span); }

  void find(const Span& span, std::vector<Range>& found) const {
    found.clear();
    for (const Span& other : placed_) {
      const bool one_waits =
          (other.last < span.first && waits(span, other)) || (span.last < other.first && waits(other, span));
      if (!one_waits) found.push_back({other.offset, other.offset + other.bytes});
    }
  }

 private:
  bool waits(const Span& later, const Span& earlier) const {
    const auto first = static_cast<std::size_t>(later.first);
    if (earlier.slot < 0) return order_.waits(first, static_cast<std::size_t>(earlier.first));
    return std::ranges::all_of(touching_[static_cast<std::size_t>(earlier.slot)],
                               [&](std::size_t step) { return order_.waits(first, step); });
  }

  StepOrder order_;
  std::vector<std::vector<std::size_t>> touching_;  // by slot, the steps that do
  std::vector<Span> placed_;
};

}  // namespace

void arena(Program& program, const Target& target, std::size_t bytes_apart) {
  const std::vector<Span> spans = spans_of(program);
  donate(program, spans, target);
  std::vector<Span> temporaries;
  for (const Span& span : spans) {
    if (program.slots[static_cast<std::size_t>(span.slot)].kind == Slot::Kind::temporary && span.first >= 0) {
      temporaries.push_back(span);
    }
  }
  // Scratch of a step lives for that step alone; its size is known once the kernel is chosen.
  for (std::size_t step = 0; step < program.scratch.size(); ++step) {
    if (program.scratch[step] == 0) continue;
    const auto at = static_cast<std::int32_t>(step);
    temporaries.push_back({-1 - at, program.scratch[step], at, at});
  }
  program.arena_bytes = place(temporaries, Alive(program.steps.size()));
  if (program.arena_bytes < bytes_apart && program.steps.size() <= most_steps) {
    std::vector<Span> apart = temporaries;
    const std::size_t bytes = place(apart, ThatCouldLive(program));
    if (bytes <= bytes_apart) {
      temporaries = std::move(apart);
      program.arena_bytes = bytes;
    }
  }
  for (const Span& span : temporaries) {
    if (span.slot >= 0) {
      program.slots[static_cast<std::size_t>(span.slot)].offset = span.offset;
    } else {
      program.scratch[static_cast<std::size_t>(-1 - span.slot)] = span.offset;
    }
  }
}

}  // namespace russet::compile::passes
