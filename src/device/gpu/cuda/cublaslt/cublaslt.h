#pragma once
// CublasLt: products by cuBLASLt, and contractions over images that are products.
#include "device/gpu/cuda/answers.h"
#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/cublaslt/matmul_call.h"
#include "device/gpu/cuda/planning/questions.h"

namespace russet::cuda {

class CublasLt final : public Products {
 public:
  /// Throws DeviceError if there is no cuBLASLt.
  explicit CublasLt(const Context& context);
  std::string version() const override { return version_text(cublaslt().get_version()); }

 private:
  gpu::Verdict answer(const MatmulQuestion& question, std::vector<gpu::Region> regions,
                      const gpu::GpuContext& context) const override;

  const Context& context_;
  cublasLtHandle_t handle_ = nullptr;  // for the rest of the process
  mutable Answers<MatmulCall> answers_;
};

}  // namespace russet::cuda
