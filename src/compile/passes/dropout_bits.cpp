// Dropout's bits: an attention that draws its random numbers also stores which probabilities they keep, so that its
// gradients need not draw them again. Before:                    After:
//   attention: draw numbers, store y                               attention: draw numbers, store y, what they keep
//   gradients: draw the same numbers, store the gradients          gradients: read what is kept, store the gradients
#include <algorithm>

#include "compile/passes/passes.h"
#include "ops/attention.h"

namespace russet::compile::passes {
namespace {

using ops::Op;

const ops::Attention& attributes_of(const Primitive& attention) {
  return std::get<ops::Attention>(attention.attributes);
}

/// The random numbers of an attention, or of a gradient of one, if it draws them itself.
Operand* drawn_by(Primitive& attention) {
  const int at = ops::attention_inputs(attention.op, attributes_of(attention)).uniform;
  if (at < 0) return nullptr;
  Operand& uniform = attention.inputs[static_cast<std::size_t>(at)];
  return uniform.access.slot < 0 ? &uniform : nullptr;
}

/// Sixteen bits for a row and a fourth of 64 columns, the number of rows made even: see attention.metal.
Operand bits_of(const Shape& scores) {
  Shape sizes = scores;
  const int rank = scores.rank();
  sizes[rank - 2] = (scores[rank - 1] + 63) / 64 * 4;
  sizes[rank - 1] = (scores[rank - 2] + 1) / 2 * 2;
  return {{-1, DType::int16, 0, -1, contiguous_strides(sizes)}, sizes};
}

class DropoutBits {
 public:
  DropoutBits(Program& program, const Target& target) : program_(program), target_(target) {}

  void run() {
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      auto* const gradient = std::get_if<Primitive>(&program_.steps[step]);
      if (gradient == nullptr || gradient->op != Op::attention_key_gradient || drawn_by(*gradient) == nullptr) continue;
      if (Primitive* const attention = attention_of(*gradient, step)) hand_over(*attention, *gradient);
    }
  }

 private:
  /// The last attention before the step that draws the same numbers.
  Primitive* attention_of(Primitive& gradient, std::size_t before) {
    while (before-- > 0) {
      auto* const attention = std::get_if<Primitive>(&program_.steps[before]);
      if (attention != nullptr && attention->op == Op::attention && draws_the_same(*attention, gradient)) {
        return attention;
      }
    }
    return nullptr;
  }

  static bool draws_the_same(Primitive& attention, Primitive& gradient) {
    const Operand* const numbers = drawn_by(attention);
    return numbers != nullptr && *numbers == *drawn_by(gradient) && attention.attributes == gradient.attributes;
  }

  void hand_over(Primitive& attention, Primitive& gradient) {
    // A causal attention draws no numbers for what it does not see.
    if (attributes_of(attention).causal) return;
    const auto stored = std::ranges::find(attention.companions, Op::uniform, &Companion::op);
    const bool is_stored = stored != attention.companions.end();  // for another gradient
    Operand bits = is_stored ? stored->output : bits_of(drawn_by(attention)->sizes);
    if (!is_stored) bits.access.slot = static_cast<std::int32_t>(program_.slots.size());
    Primitive reading = gradient;
    *drawn_by(reading) = bits;
    if (!target_.has_kernel(reading) || !(is_stored || stores(attention, bits))) return;
    gradient = std::move(reading);
  }

  /// Whether the attention stores the bits from now on.
  bool stores(Primitive& attention, const Operand& bits) {
    Primitive with_bits = attention;
    with_bits.companions.push_back({.op = Op::uniform, .output = bits});
    if (!target_.has_kernel(with_bits)) return false;
    add_temporary(program_, static_cast<std::size_t>(numel(bits.sizes)) * size_of(DType::int16));
    attention = std::move(with_bits);
    return true;
  }

  Program& program_;
  const Target& target_;
};

}  // namespace

void dropout_bits(Program& program, const Target& target) {
  // Where memory is limited, there may be no room for bits until the gradients.
  if (!program.room) DropoutBits(program, target).run();
}

}  // namespace russet::compile::passes
