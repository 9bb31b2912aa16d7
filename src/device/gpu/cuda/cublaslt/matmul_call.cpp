#include "device/gpu/cuda/cublaslt/matmul_call.h"

#include <russet/error.h>

#include <vector>

namespace russet::cuda {
namespace {

/// As much as NVIDIA recommends for Hopper.
constexpr std::uint64_t most_workspace = std::uint64_t{32} << 20;

cudaDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return CUDA_R_32F;
    case DType::float16: return CUDA_R_16F;
    case DType::bfloat16: return CUDA_R_16BF;
    default: throw InternalError("cuBLASLt is asked for a product of another type");
  }
}

struct DestroyPreference {
  void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const {
    cublaslt().matmul_preference_destroy(preference);
  }
};
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, DestroyPreference>;

template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, T value) {
  check(cublaslt().matmul_preference_set_attribute(preference.get(), attribute, &value, sizeof(value)),
        "describing a product");
}

/// Sums in float32, whose parts are added in one order.
Preference preference_of(std::uint32_t alignment) {
  cublasLtMatmulPreferenceOpaque_t* made = nullptr;
  check(cublaslt().matmul_preference_create(&made), "describing a product");
  Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace);
  set<std::uint32_t>(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                     CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
  return preference;
}

}  // namespace

MatmulCall::Layout MatmulCall::layout_of(const StoredMatrix& matrix, DType dtype, std::int64_t batches) {
  cublasLtMatrixLayoutOpaque_t* made = nullptr;
  check(cublaslt().matrix_layout_create(&made, type_of(dtype), static_cast<std::uint64_t>(matrix.rows),
                                        static_cast<std::uint64_t>(matrix.columns), matrix.leading),
        "describing a product");
  Layout layout(made);
  const auto count = static_cast<std::int32_t>(batches);
  check(cublaslt().matrix_layout_set_attribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
        "describing a product");
  check(cublaslt().matrix_layout_set_attribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.batch_stride,
                                               sizeof(matrix.batch_stride)),
        "describing a product");
  return layout;
}

MatmulCall::MatmulCall(cublasLtHandle_t handle, const MatmulQuestion& question, std::size_t proposal)
    : handle_(handle),
      first_(layout_of(question.product.first, question.factors, question.product.batches)),
      second_(layout_of(question.product.second, question.factors, question.product.batches)),
      result_(layout_of(question.product.result, question.result, question.product.batches)),
      has_bias_(question.tail.bias) {
  cublasLtMatmulDescOpaque_t* made = nullptr;
  check(cublaslt().matmul_desc_create(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
  matmul_.reset(made);
  const auto operation_of = [](const StoredMatrix& matrix) { return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, operation_of(question.product.first));
  set(CUBLASLT_MATMUL_DESC_TRANSB, operation_of(question.product.second));
  if (has_bias_) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, question.tail.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(question.result));
  }
  std::vector<cublasLtMatmulHeuristicResult_t> found(proposal + 1);
  int count = 0;
  check(cublaslt().matmul_algo_get_heuristic(handle_, made, first_.get(), second_.get(), result_.get(), result_.get(),
                                             preference_of(question.alignment).get(), static_cast<int>(found.size()),
                                             found.data(), &count),
        "looking for an algorithm");
  if (static_cast<std::size_t>(count) <= proposal) throw DeviceError("cuBLASLt has no algorithm for the product");
  algorithm_ = found[proposal].algo;
  workspace_bytes_ = found[proposal].workspaceSize;
}

template <class T>
void MatmulCall::set(cublasLtMatmulDescAttributes_t attribute, T value) const {
  check(cublaslt().matmul_desc_set_attribute(matmul_.get(), attribute, &value, sizeof(value)), "describing a product");
}

void MatmulCall::enqueue(std::span<std::byte* const> addresses, CUstream stream) const {
  constexpr float one = 1;
  constexpr float zero = 0;
  if (has_bias_) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(addresses[3]));
  std::byte* const workspace = workspace_bytes_ > 0 ? aligned_workspace(addresses[has_bias_ ? 4 : 3]) : nullptr;
  check(cublaslt().matmul(handle_, matmul_.get(), &one, addresses[0], first_.get(), addresses[1], second_.get(), &zero,
                          addresses[2], result_.get(), addresses[2], result_.get(), &algorithm_, workspace,
                          workspace_bytes_, stream),
        "a product");
}

}  // namespace russet::cuda
