#include "device/gpu/cuda/planning/products.h"

#include <utility>

#include "compile/layouts.h"
#include "device/gpu/cuda/planning/questions.h"
#include "device/gpu/templates/templates.h"

namespace russet::cuda {
namespace {

/// Dense strides with which all batches of the matrix are evenly spaced; nothing if they are, as it lies.
std::optional<Strides> with_even_batches(const compile::Operand& matrix) {
  const int rank = matrix.sizes.rank();
  const Strides& strides = matrix.access.strides;
  std::int64_t inner = -1;  // the last batch axis that has more than one element
  bool is_even = true;
  for (int axis = rank - 3; axis >= 0; --axis) {
    if (matrix.sizes[axis] == 1) continue;
    is_even &= inner < 0 || strides[axis] == strides[static_cast<int>(inner)] * matrix.sizes[static_cast<int>(inner)];
    inner = axis;
  }
  if (is_even) return std::nullopt;
  Strides dense = contiguous_strides(matrix.sizes);
  // Neighbours in a column stay neighbours.
  if (strides[rank - 2] == 1 && strides[rank - 1] != 1) {
    dense[rank - 2] = 1;
    dense[rank - 1] = matrix.sizes[rank - 2];
  }
  return dense;
}

/// Operations a second that cuBLAS reaches in float32, about, on an H200: 41 to 51 TFLOP/s in large products; 16 to 25
/// in batches of small matrices and in convolutions, which are of a small depth, less in gradients of their small
/// weights; and 14 where tiles of 128 x 128 do not fill the cores, though not with fewer rows or columns, which have
/// tiles of their own. All but the first are by where efficientnet_b0, vit_b_16, mlp and alexnet train fastest.
double float32_rate(const compile::Primitive& product) {
  constexpr std::int64_t tile = 128, cores = 132;
  const Shape& sizes = product.output.sizes;
  if (product.op == ops::Op::convolution_weight) return 12e12;
  if (product.op != ops::Op::matmul || sizes.rank() > 2) return 18e12;
  const bool has_few_tiles = sizes[0] * sizes[1] < tile * tile * cores;
  return has_few_tiles && sizes[0] >= tile && sizes[1] >= tile ? 14e12 : 47e12;
}

/// Why a kernel of ours is as fast or faster; empty if the library's is the faster one.
std::string why_ours(const compile::Primitive& whole, const gpu::Properties& properties) {
  const bool is_bare = !library_epilogue(whole);
  if (is_bare && gpu::is_stationary_product(whole)) return narrow_product;
  if (is_bare && gpu::prefers_warpgroup_product(whole, properties)) return own_product;
  const compile::Primitive product = is_bare ? whole : without_epilogue(whole);
  return gpu::prefers_split_product(product, properties, float32_rate(product)) ? faster_product : "";
}

}  // namespace

gpu::Verdict Products::judge(const compile::Primitive& whole, const gpu::GpuContext& context) const {
  const std::optional<LibraryEpilogue> epilogue = library_epilogue(whole);
  const compile::Primitive bare = epilogue ? without_epilogue(whole) : compile::Primitive{};
  const compile::Primitive& primitive = epilogue ? bare : whole;
  if (std::string reason = why_not_asked(primitive); !reason.empty()) return gpu::decline(reason);
  if (std::string reason = why_ours(whole, context.properties); !reason.empty()) return gpu::decline(reason);
  const gpu::Contraction contraction = gpu::describe_contraction(primitive);
  const auto product = column_major(contraction);
  if (!product) return gpu::decline("strides, windows or batches that are not a product's");
  std::vector<gpu::Region> regions = regions_of(primitive);
  if (regions.empty()) return gpu::decline("an operand that lies backwards");
  if (epilogue && (!product->swapped || product->batches > 1)) return gpu::decline("a bias of another kind of product");
  if ((product->swapped ? contraction.right_input : contraction.left_input) == 1) std::swap(regions[0], regions[1]);
  if (epilogue) regions.push_back(epilogue->regions.front());
  const MatmulQuestion question{*product, primitive.inputs[0].access.dtype, primitive.output.access.dtype,
                                alignment_of(regions), epilogue ? epilogue->tail : LibraryTail{}};
  return answer(question, std::move(regions), context);
}

bool Products::multiplies(DType dtype, double operations) const {
  return is_asked_of(dtype) && operations >= fewest_operations;
}

std::optional<Strides> Products::required_strides(const compile::Primitive& contraction, int operand,
                                                  const gpu::Properties& properties) const {
  if (!why_not_asked(contraction).empty()) return std::nullopt;
  const compile::Operand& one = compile::operand_of(contraction, operand);
  if (contraction.op == ops::Op::matmul) {
    return why_ours(contraction, properties).empty() ? with_even_batches(one) : std::nullopt;
  }
  if (!gpu::is_pointwise(contraction)) return std::nullopt;
  return compile::is_weight(contraction, operand) ? contiguous_strides(one.sizes) : compile::channels_last(one.sizes);
}

}  // namespace russet::cuda
