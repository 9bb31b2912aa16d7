#pragma once
// CublasLt: products by cuBLASLt, and contractions over images that are products.
#include "device/gpu/cuda/answers.h"
#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/cublaslt/matmul_call.h"
#include "device/gpu/cuda/questions.h"
#include "device/gpu/vendor_library.h"

namespace russet::cuda {

class CublasLt final : public gpu::VendorLibrary {
 public:
  /// Throws DeviceError if there is no cuBLASLt.
  explicit CublasLt(const Context& context);
  const char* name() const override { return "cublaslt"; }
  gpu::Verdict judge(const compile::Primitive& primitive, const gpu::GpuContext& context) const override;
  bool multiplies(DType dtype, double operations) const override {
    return is_asked_of(dtype) && operations >= fewest_operations;
  }
  std::optional<Strides> required_strides(const compile::Primitive& contraction, int operand) const override;

 private:
  const Context& context_;
  cublasLtHandle_t handle_ = nullptr;  // for the rest of the process
  mutable Answers<MatmulCall> answers_;
};

}  // namespace russet::cuda
