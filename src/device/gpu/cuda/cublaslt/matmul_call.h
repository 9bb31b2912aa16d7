#pragma once
// MatmulCall: a product by cuBLASLt: its descriptors and its algorithm, made once.
#include <memory>

#include "device/gpu/cuda/cublaslt/api.h"
#include "device/gpu/cuda/pipeline.h"
#include "device/gpu/cuda/planning/products.h"

namespace russet::cuda {

/// Its buffers: the first factor, the second, the result, a bias if it has one, and a workspace if it has one. One
/// thread at a time enqueues it.
class MatmulCall final : public LibraryCall {
 public:
  /// Takes an algorithm of those that add up in float32: the first (0) is what cuBLASLt's heuristic thinks best. Throws
  /// DeviceError if it does not know as many.
  MatmulCall(cublasLtHandle_t handle, const MatmulQuestion& question, std::size_t proposal);

  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  void enqueue(std::span<std::byte* const> addresses, CUstream stream) const override;

  struct DestroyMatmul {
    void operator()(cublasLtMatmulDescOpaque_t* matmul) const { cublaslt().matmul_desc_destroy(matmul); }
  };
  struct DestroyLayout {
    void operator()(cublasLtMatrixLayoutOpaque_t* layout) const { cublaslt().matrix_layout_destroy(layout); }
  };
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, DestroyLayout>;
  static Layout layout_of(const StoredMatrix& matrix, DType dtype, std::int64_t batches);

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) const;

  cublasLtHandle_t handle_;
  std::unique_ptr<cublasLtMatmulDescOpaque_t, DestroyMatmul> matmul_;
  Layout first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
  bool has_bias_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace russet::cuda
