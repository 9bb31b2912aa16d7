#include "device/gpu/cuda/planning/library_epilogue.h"

#include <algorithm>

#include "compile/layouts.h"

namespace russet::cuda {
namespace {

using compile::Access;
using compile::Instruction;
using compile::Primitive;
using ops::Op;
using Kind = Instruction::Kind;

/// An epilogue's code, read from its end to the contraction's result.
class Chain {
 public:
  explicit Chain(const Primitive& contraction)
      : group_(contraction.epilogue),
        output_(contraction.output),
        is_product_(contraction.op == Op::matmul),
        at_(code().back().inputs[0]) {}

  /// Whether it is the code of a LibraryEpilogue and nothing else.
  bool read() {
    relu_ = back_over(Op::maximum, [](const Instruction& in) { return in.kind == Kind::constant && is_zero(in); });
    while (back_over(Op::add, [this](const Instruction& in) { return takes(in); })) {
    }
    const Instruction& first = instruction(at_);
    const bool is_result = first.kind == Kind::load && first.access == 0;
    return code().back().kind == Kind::store && is_result && bias_ != nullptr && read_ + 2 == code().size();
  }

  std::optional<LibraryEpilogue> epilogue() const {
    LibraryEpilogue epilogue{{true, residual_ != nullptr, relu_}, {}};
    for (const Access* access : {bias_, residual_}) {
      if (access == nullptr) continue;
      const gpu::Placed placed = gpu::place(*access, group_.space, false);
      if (placed.first != 0) return std::nullopt;
      epilogue.regions.push_back(placed.region);
    }
    return epilogue;
  }

 private:
  const std::vector<Instruction>& code() const { return group_.code; }
  const Instruction& instruction(std::int16_t at) const { return code()[static_cast<std::size_t>(at)]; }
  static bool is_zero(const Instruction& in) { return in.number.real == 0; }

  /// If an operator of two operands stands here, and `is_other` says yes of one: goes on to the other one.
  template <class IsOther>
  bool back_over(Op op, const IsOther& is_other) {
    const Instruction& in = instruction(at_);
    if (in.kind != Kind::compute || in.op != op || in.dtype != output_.access.dtype) return false;
    for (const std::size_t side : {0U, 1U}) {
      if (!is_other(instruction(in.inputs[1 - side]))) continue;
      at_ = in.inputs[side];
      read_ += 2;
      return true;
    }
    return false;
  }

  /// Whether the instruction loads the bias or the residual.
  bool takes(const Instruction& in) {
    if (in.kind != Kind::load || in.access == 0) return false;
    const Access& access = group_.accesses[static_cast<std::size_t>(in.access)];
    if (access.dtype != output_.access.dtype || access.offset_argument >= 0) return false;
    const auto lies = [&](const Strides& strides) {
      return compile::same_strides(group_.space, access.strides, strides);
    };
    const Access*& place = lies(strides_of_bias()) ? bias_ : residual_;
    if (place != nullptr) return false;
    if (&place == &residual_ && (is_product_ || !lies(output_.access.strides))) return false;
    place = &access;
    return true;
  }

  Strides strides_of_bias() const {
    Strides strides = Strides::filled(group_.space.rank(), 0);
    strides[is_product_ ? group_.space.rank() - 1 : 1] = 1;
    return strides;
  }

  const compile::Group& group_;
  const compile::Operand& output_;
  bool is_product_;
  std::int16_t at_;       // of the instruction that is read next
  std::size_t read_ = 0;  // instructions
  bool relu_ = false;
  const Access* bias_ = nullptr;
  const Access* residual_ = nullptr;
};

}  // namespace

std::optional<LibraryEpilogue> library_epilogue(const Primitive& contraction) {
  const compile::Group& group = contraction.epilogue;
  const bool is_elementwise = group.kind == compile::Group::Kind::elementwise && !group.code.empty();
  const bool takes_one = contraction.op == Op::convolution || contraction.op == Op::matmul;
  if (!takes_one || !is_elementwise || group.space != contraction.output.sizes) return std::nullopt;
  Chain chain(contraction);
  return chain.read() ? chain.epilogue() : std::nullopt;
}

}  // namespace russet::cuda
