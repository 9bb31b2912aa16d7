#pragma once
// Products: what cuBLASLt is asked, without cuBLASLt: so that a plan can be made where there is none.
#include "device/gpu/cuda/planning/column_major.h"
#include "device/gpu/cuda/planning/library_epilogue.h"
#include "device/gpu/vendor_library.h"

namespace russet::cuda {

/// `alignment`: of all addresses, in bytes.
struct MatmulQuestion {
  ColumnMajorProduct product;
  DType factors = DType::float32, result = DType::float32;
  std::uint32_t alignment = 16;
  LibraryTail tail{};  // of a row-major result; the bias is a further region, behind that of the result
};

/// Products of matrices, with a bias and relu or without, and in float32 convolutions of one pixel.
class Products : public gpu::VendorLibrary {
 public:
  const char* name() const final { return "cublaslt"; }
  gpu::Verdict judge(const compile::Primitive& primitive, const gpu::GpuContext& context) const final;
  bool multiplies(DType dtype, double operations) const final;
  std::optional<Strides> required_strides(const compile::Primitive& contraction, int operand,
                                          const gpu::Properties& properties) const final;

 private:
  /// Of a product that is asked for: a call on the regions of the first factor, the second, the result and the
  /// bias.
  virtual gpu::Verdict answer(const MatmulQuestion& question, std::vector<gpu::Region> regions,
                              const gpu::GpuContext& context) const = 0;
};

}  // namespace russet::cuda
