#include "device/gpu/cuda/planning/bias.h"

#include <algorithm>

namespace russet::cuda {
namespace {

using compile::Access;
using compile::Group;
using compile::Instruction;
using compile::Primitive;
using Kind = Instruction::Kind;

/// Whether it has an element for each column, side by side, the same for all rows.
bool is_along_columns(const Access& access) {
  const int last = access.strides.rank() - 1;
  return last >= 0 && access.strides[last] == 1 && access.offset_argument < 0 &&
         std::all_of(access.strides.begin(), access.strides.begin() + last, [](auto stride) { return stride == 0; });
}

/// Whether the code is: load the result, load another array (access `bias`), add the two, store that.
bool adds_two(const Group& group, std::int16_t& bias) {
  const std::vector<Instruction>& code = group.code;
  if (code.size() != 4 || code[0].kind != Kind::load || code[1].kind != Kind::load) return false;
  const bool result_first = code[0].access == 0;
  bias = code[result_first ? 1 : 0].access;
  if (bias == 0 || code[result_first ? 0 : 1].access != 0) return false;
  const auto adds = [](const Instruction& in) {
    return in.kind == Kind::compute && in.op == ops::Op::add && std::max(in.inputs[0], in.inputs[1]) == 1 &&
           std::min(in.inputs[0], in.inputs[1]) == 0;
  };
  return adds(code[2]) && code[3].kind == Kind::store && code[3].inputs[0] == 2;
}

}  // namespace

std::optional<gpu::Region> bias_of(const Primitive& product) {
  const Group& group = product.epilogue;
  std::int16_t which = 0;
  if (product.op != ops::Op::matmul || group.kind != Group::Kind::elementwise || !adds_two(group, which)) {
    return std::nullopt;
  }
  const Access& bias = group.accesses[static_cast<std::size_t>(which)];
  const DType dtype = product.output.access.dtype;
  if (group.space != product.output.sizes || bias.dtype != dtype || group.code[2].dtype != dtype) return std::nullopt;
  if (!is_along_columns(bias)) return std::nullopt;
  const gpu::Placed placed = gpu::place(bias, group.space, false);
  if (placed.first != 0) return std::nullopt;
  return placed.region;
}

}  // namespace russet::cuda
