// Positions: a pool also stores where its maxima were, so that its gradient does not look for them again, and what they
// were found in need not be kept for that. Before:                   After:
//   max_pool: read y, store its maxima                                max_pool: ..., store where they were
//   max_unpool: read y, find its maxima; read g, store the gradient   max_unpool: read where they were; read g, ...
#include <algorithm>

#include "compile/layouts.h"
#include "compile/passes/lives.h"
#include "compile/passes/passes.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

/// The number of a tap takes a byte, row by row of a window.
constexpr int most_taps = 255;

class Positions {
 public:
  Positions(Program& program, const Target& target) : program_(program), target_(target) {
    if (program.room) lives_ = lives_of(program);
  }

  void run() {
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      auto* const gradient = std::get_if<Primitive>(&program_.steps[step]);
      if (gradient == nullptr || gradient->op != Op::max_unpool || has_prologue(*gradient)) continue;
      const std::optional<std::size_t> pool = pool_of(*gradient, step);
      if (pool && has_room(*pool, step)) hand_over(std::get<Primitive>(program_.steps[*pool]), *gradient);
    }
  }

 private:
  /// The last step before that looks for the same maxima, if nothing has overwritten since what it finds them in.
  std::optional<std::size_t> pool_of(const Primitive& gradient, std::size_t before) const {
    const std::int32_t image = gradient.inputs[0].access.slot;
    while (before-- > 0) {
      const auto* const pool = std::get_if<Primitive>(&program_.steps[before]);
      if (pool != nullptr && finds_the_same(*pool, gradient)) return before;
      bool is_overwritten = false;
      for_each_access(program_.steps[before],
                      [&](std::int32_t slot, bool writes) { is_overwritten |= writes && slot == image; });
      if (is_overwritten) return std::nullopt;
    }
    return std::nullopt;
  }

  /// Whether positions may live from the one step to the other: where memory is limited, the image must be gone earlier
  /// for them, or there must be room.
  bool has_room(std::size_t pool, std::size_t gradient) const {
    if (!program_.room) return true;
    const auto& step = std::get<Primitive>(program_.steps[gradient]);
    const auto image = static_cast<std::size_t>(step.inputs[0].access.slot);
    const bool is_last = lives_.last[image] == static_cast<std::int32_t>(gradient);
    if (is_last && program_.slots[image].kind == Slot::Kind::temporary) return true;
    const auto more = static_cast<std::size_t>(numel(step.inputs[1].sizes));
    const auto begin = lives_.bytes.begin();
    const std::size_t most =
        *std::max_element(begin + static_cast<std::ptrdiff_t>(pool), begin + static_cast<std::ptrdiff_t>(gradient) + 1);
    return most + more <= *program_.room;
  }

  static bool finds_the_same(const Primitive& pool, const Primitive& gradient) {
    return pool.op == Op::max_pool && !has_prologue(pool) && pool.attributes == gradient.attributes &&
           pool.inputs[0] == pool.inputs[1] && pool.inputs[0] == gradient.inputs[0];
  }

  void hand_over(Primitive& pool, Primitive& gradient) {
    const auto& window = std::get<ops::Window>(pool.attributes);
    // By its sizes a gradient's kernel tells positions from an image.
    const bool are_told_apart = pool.output.sizes != pool.inputs[0].sizes;
    if (!are_told_apart || window.kernel[0] * window.kernel[1] > most_taps) return;
    if (pool.companions.empty()) {
      Primitive with_positions = pool;
      with_positions.companions.push_back({Op::argmax, positions_of(pool.output)});
      if (!target_.has_kernel(with_positions)) return;
      with_positions.companions[0].output.access.slot =
          add_temporary(program_, static_cast<std::size_t>(numel(pool.output.sizes)));
      pool = std::move(with_positions);
    }
    gradient.inputs[0] = pool.companions[0].output;
  }

  /// In the order in which maxima lie, without gaps.
  static Operand positions_of(const Operand& maxima) {
    Operand positions{{0, DType::uint8, 0, -1, contiguous_strides(maxima.sizes)}, maxima.sizes};
    if (maxima.access.strides[1] == 1) positions.access.strides = channels_last(maxima.sizes);
    return positions;
  }

  Program& program_;
  const Target& target_;
  Lives lives_;  // where memory is limited
};

}  // namespace

void positions(Program& program, const Target& target) { Positions(program, target).run(); }

}  // namespace russet::compile::passes
