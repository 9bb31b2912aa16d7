#pragma once
// What contractions do to their result before it is stored, read off the epilogue's instructions.
#include <optional>
#include <string>
#include <vector>

#include "compile/step.h"

namespace russet::cpu {

struct PostOp {
  enum class Kind {
    add,       // + operand
    multiply,  // * operand
    scale,     // * number
    shift,     // + number
    relu,
    tanh,
    sigmoid,
    gelu,  // x * ndtr(x)
  };
  Kind kind;
  double number = 0;
  compile::Access operand{};  // strides over the output's sizes
};

struct Epilogue {
  std::vector<PostOp> ops;  // applied in this order
  /// If it was not understood, why.
  std::string refusal;
};

/// The chain of operations that leads from the contraction's result to the output. Casts between floating types within
/// the chain are left out: values stay in float32, and an epilogue is allowed to change last bits.
Epilogue read_epilogue(const compile::Primitive& contraction);

}  // namespace russet::cpu
