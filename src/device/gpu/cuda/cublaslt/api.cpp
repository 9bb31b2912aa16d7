#include "device/gpu/cuda/cublaslt/api.h"

#include <fmt/format.h>
#include <russet/error.h>

#include "device/gpu/cuda/library.h"

namespace russet::cuda {
namespace {

CublasLtApi load() {
  const Library library(cublaslt_names);
  CublasLtApi api{};
  library.load(api.create, "cublasLtCreate");
  library.load(api.get_status_string, "cublasLtGetStatusString");
  library.load(api.get_version, "cublasLtGetVersion");
  library.load(api.matmul, "cublasLtMatmul");
  library.load(api.matmul_algo_get_heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.load(api.matmul_desc_create, "cublasLtMatmulDescCreate");
  library.load(api.matmul_desc_destroy, "cublasLtMatmulDescDestroy");
  library.load(api.matmul_desc_set_attribute, "cublasLtMatmulDescSetAttribute");
  library.load(api.matrix_layout_create, "cublasLtMatrixLayoutCreate");
  library.load(api.matrix_layout_destroy, "cublasLtMatrixLayoutDestroy");
  library.load(api.matrix_layout_set_attribute, "cublasLtMatrixLayoutSetAttribute");
  library.load(api.matmul_preference_create, "cublasLtMatmulPreferenceCreate");
  library.load(api.matmul_preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library.load(api.matmul_preference_set_attribute, "cublasLtMatmulPreferenceSetAttribute");
  return api;
}

}  // namespace

const CublasLtApi& cublaslt() {
  static const CublasLtApi loaded = load();
  return loaded;
}

void check(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("cuda: {} failed: cuBLASLt says {}", what, cublaslt().get_status_string(status)));
}

}  // namespace russet::cuda
