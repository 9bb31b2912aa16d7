#include "device/gpu/emitter/deviations.h"

namespace russet::gpu {
namespace {

using compile::Extent;
using compile::Group;
using compile::Instruction;
using ops::Op;
using Kind = Instruction::Kind;

class Rewriter {
 public:
  explicit Rewriter(const Group& group)
      : group_(group), result_{group.kind, group.space, group.split, group.accesses, {}} {}

  Group run() {
    for (const Instruction& in : group_.code) {
      Instruction moved = in;
      for (std::int16_t& input : moved.inputs) {
        if (input >= 0) input = places_[static_cast<std::size_t>(input)];
      }
      const bool sums = in.kind == Kind::reduce && in.op == Op::squared_deviations;
      places_.push_back(sums ? two_sweeps(moved) : push(moved));
    }
    return std::move(result_);
  }

 private:
  std::int16_t push(const Instruction& in) {
    result_.code.push_back(in);
    return static_cast<std::int16_t>(result_.code.size() - 1);
  }

  std::int16_t compute(Op op, Extent extent, std::int16_t a, std::int16_t b = -1) {
    return push({.op = op, .dtype = DType::float32, .extent = extent, .inputs = {a, b, -1}});
  }

  std::int16_t sum(std::int16_t of) {
    return push({.kind = Kind::reduce,
                 .op = Op::sum,
                 .dtype = DType::float32,
                 .extent = Extent::reduced,
                 .inputs = {of, -1, -1}});
  }

  std::int16_t two_sweeps(const Instruction& in) {
    std::int64_t columns = 1;
    for (int axis = group_.split; axis < group_.space.rank(); ++axis) columns *= group_.space[axis];
    const auto share = push({.kind = Kind::constant, .number = {1.0 / static_cast<double>(columns), 0}});
    const auto x = in.inputs[0];
    const auto mean = sum(compute(Op::mul, Extent::full, x, share));
    const auto distance = compute(Op::sub, Extent::full, x, mean);
    const auto squares = sum(compute(Op::mul, Extent::full, distance, distance));
    const auto rest = sum(distance);
    const auto excess = compute(Op::mul, Extent::reduced, compute(Op::mul, Extent::reduced, rest, rest), share);
    const auto result = compute(Op::sub, Extent::reduced, squares, excess);
    if (in.dtype == DType::float32) return result;
    return push({.op = Op::cast, .dtype = in.dtype, .extent = Extent::reduced, .inputs = {result, -1, -1}});
  }

  const Group& group_;
  Group result_;
  std::vector<std::int16_t> places_;  // in the result, of each instruction
};

}  // namespace

Group with_two_sweeps(const Group& row_group) { return Rewriter(row_group).run(); }

}  // namespace russet::gpu
