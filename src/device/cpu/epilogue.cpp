#include "device/cpu/epilogue.h"

#include <fmt/format.h>

#include "device/cpu/operand.h"

namespace russet::cpu {
namespace {

using compile::Access;
using compile::Extent;
using compile::Instruction;
using compile::Primitive;
using ops::Op;

/// What an instruction gives, in terms of the contraction's result x.
struct Term {
  enum class Kind {
    unknown,
    chain,    // x after some post-ops
    operand,  // another array
    number,   // a constant
    ndtr,     // ndtr(chain)
  };
  Kind kind = Kind::unknown;
  std::vector<PostOp> ops{};
  Access operand{};
  double number = 0;
};

bool same(const std::vector<PostOp>& a, const std::vector<PostOp>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const PostOp& x, const PostOp& y) {
           return x.kind == y.kind && x.number == y.number && x.operand == y.operand;
         });
}

Term extended(Term chain, PostOp op) {
  chain.ops.push_back(std::move(op));
  return chain;
}

class Reader {
 public:
  explicit Reader(const Primitive& primitive) : group_(primitive.epilogue), primitive_(primitive) {}

  Epilogue read() {
    for (const Instruction& instruction : group_.code) {
      terms_.push_back(term_of(instruction));
      if (instruction.kind == Instruction::Kind::store) {
        if (stored_) return refuse("it stores more than one result");
        stored_ = true;
        const Term& value = term(instruction.inputs[0]);
        if (value.kind != Term::Kind::chain) return refuse("it is no chain of operations that are understood");
        const Access& target = group_.accesses[static_cast<std::size_t>(instruction.access)];
        if (target.dtype != primitive_.output.access.dtype) return refuse("it stores another type than the output's");
        result_.ops = value.ops;
      }
    }
    if (!stored_) return refuse("it stores nothing");
    return result_;
  }

 private:
  static Epilogue refuse(std::string reason) { return {{}, std::move(reason)}; }
  const Term& term(int position) const { return terms_[static_cast<std::size_t>(position)]; }

  Term term_of(const Instruction& instruction) const {
    using Kind = Instruction::Kind;
    if (instruction.extent != Extent::full || !is_floating(instruction.dtype)) {
      if (instruction.kind != Kind::compute) return {};
    }
    switch (instruction.kind) {
      case Kind::load: {
        if (instruction.access == 0) return {.kind = Term::Kind::chain};
        return {.kind = Term::Kind::operand, .operand = group_.accesses[static_cast<std::size_t>(instruction.access)]};
      }
      case Kind::constant: return {.kind = Term::Kind::number, .number = instruction.number.real};
      case Kind::compute: return compute(instruction);
      default: return {};
    }
  }

  Term compute(const Instruction& instruction) const {
    const Term& first = term(instruction.inputs[0]);
    switch (instruction.op) {
      case Op::cast: return is_floating(instruction.dtype) ? first : Term{};
      case Op::tanh: return unary(first, PostOp::Kind::tanh);
      case Op::sigmoid: return unary(first, PostOp::Kind::sigmoid);
      case Op::ndtr: return distribution_function(first);
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::div:
      case Op::maximum: return binary(instruction.op, first, term(instruction.inputs[1]));
      default: return {};
    }
  }

  static Term unary(const Term& value, PostOp::Kind kind) {
    return value.kind == Term::Kind::chain ? extended(value, {kind}) : Term{};
  }

  static Term binary(Op op, const Term& a, const Term& b) {
    using Kind = Term::Kind;
    if (op == Op::add || op == Op::mul || op == Op::maximum) {
      if (a.kind != Kind::chain && b.kind == Kind::chain) return binary(op, b, a);
      if (a.kind == Kind::number && b.kind != Kind::number) return binary(op, b, a);
    }
    if (op == Op::mul && a.kind == Kind::chain && b.kind == Kind::ndtr) return gelu(a, b);
    if (b.kind == Kind::number) return with_number(op, a, b.number);
    if (a.kind == Kind::chain && b.kind == Kind::operand) {
      if (op == Op::add) return extended(a, {PostOp::Kind::add, 0, b.operand});
      if (op == Op::mul) return extended(a, {PostOp::Kind::multiply, 0, b.operand});
    }
    return {};
  }

  static Term with_number(Op op, const Term& a, double number) {
    using Kind = Term::Kind;
    if (a.kind == Kind::chain) {
      if (op == Op::add) return extended(a, {PostOp::Kind::shift, number});
      if (op == Op::sub) return extended(a, {PostOp::Kind::shift, -number});
      if (op == Op::mul) return extended(a, {PostOp::Kind::scale, number});
      if (op == Op::div && number != 0) return extended(a, {PostOp::Kind::scale, 1 / number});
      if (op == Op::maximum && number == 0) return extended(a, {PostOp::Kind::relu});
    }
    return {};
  }

  static Term distribution_function(Term value) {
    if (value.kind != Term::Kind::chain) return {};
    value.kind = Term::Kind::ndtr;
    return value;
  }

  /// x * ndtr(x).
  static Term gelu(const Term& chain, const Term& distribution) {
    return same(chain.ops, distribution.ops) ? extended(chain, {PostOp::Kind::gelu}) : Term{};
  }

  const compile::Group& group_;
  const Primitive& primitive_;
  std::vector<Term> terms_;
  Epilogue result_;
  bool stored_ = false;
};

}  // namespace

Epilogue read_epilogue(const Primitive& contraction) {
  if (contraction.epilogue.code.empty()) return {};
  if (contraction.epilogue.space != contraction.output.sizes) return {{}, "its index space is not the output's"};
  return Reader(contraction).read();
}

}  // namespace russet::cpu
