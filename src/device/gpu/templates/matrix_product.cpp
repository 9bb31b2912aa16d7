#include "device/gpu/templates/matrix_product.h"

#include <algorithm>

namespace russet::gpu {

using compile::Primitive;
using ops::Op;

namespace {

/// Whether an epilogue that adds up nothing reads another array of the result's size, as a sum of two convolutions
/// does.
bool reads_residual(const Primitive& primitive) {
  const compile::Group& group = primitive.epilogue;
  if (group.code.empty() || sums_rows(primitive)) return false;
  return std::ranges::any_of(group.code, [&](const compile::Instruction& in) {
    if (in.kind != compile::Instruction::Kind::load) return false;
    const compile::Access& access = group.accesses[static_cast<std::size_t>(in.access)];
    bool all = access.slot >= 0;
    for (int axis = 0; axis < group.space.rank(); ++axis) all &= group.space[axis] == 1 || access.strides[axis] != 0;
    return all;
  });
}

}  // namespace

std::string why_no_16_bit_product(const Primitive& primitive) {
  const bool is_convolution = primitive.op == Op::convolution || primitive.op == Op::convolution_input;
  if (primitive.op != Op::matmul && !is_convolution) return "no product of rows";
  const DType type = primitive.inputs[0].access.dtype;
  if (type != DType::float16 && type != DType::bfloat16) return "not of 16 bits";
  if (compile::has_prologue(primitive)) return "a prologue";
  return is_convolution && !is_pointwise(primitive) ? "not of single pixels" : why_no_contraction(primitive);
}

std::string why_no_matrices(const Primitive& primitive, const Contraction& c) {
  if (c.depth % 8 != 0 || c.columns % 8 != 0) return "a depth or columns that are no multiple of 8";
  if (!is_along_depth(c.left_step)) return "rows whose elements lie apart";
  if (!is_in_vectors(primitive, c, true, 8) || !is_in_vectors(primitive, c, false, 8)) {
    return "operands that are not read in vectors";
  }
  if (c.window != WindowSide::none || c.batches() > 1) return "windows or batches";
  const auto is_flat = [](const ContractionAxis& axis) { return !axis.splits; };
  for (const ContractionAxis* axis : {&c.left_line, &c.left_step, &c.right_line, &c.right_step}) {
    if (!is_flat(*axis)) return "rows that are not evenly spaced";
  }
  if (!primitive.epilogue.code.empty()) return "";
  const compile::Access& result = primitive.output.access;
  const bool in_vectors = c.column.strides[2] == 1 && c.row.strides[2] % 4 == 0 && !c.row.splits && !c.column.splits &&
                          result.offset % 4 == 0 && result.offset_argument < 0;
  return in_vectors ? "" : "a result that is not stored in vectors";
}

std::string why_no_rows_epilogue(const Primitive& primitive, const Contraction& c) {
  if (sums_rows(primitive) && c.columns != primitive.epilogue.space[primitive.epilogue.space.rank() - 1]) {
    return "sums that are not those of columns";
  }
  return reads_residual(primitive) ? "a residual" : "";
}

KernelPtr rows_kernel(const ContractionWriter& writer, const char* name, std::int64_t parts,
                      base::FunctionRef<Call(const RowsVisitor&, bool)> product) {
  const auto sums = epilogue_sums(writer.primitive(), parts, writer.contraction().columns);
  const RowsVisitor rows = writer.rows_visitor(sums ? &*sums : nullptr);
  std::vector<Call> calls{product(rows, sums.has_value())};
  if (sums) calls.push_back(epilogue_results(writer.primitive(), *sums, writer.context()));
  return std::make_unique<GpuKernel>(writer.context(), name, std::move(calls), sums ? sums->parts_bytes() : 0);
}

}  // namespace russet::gpu
