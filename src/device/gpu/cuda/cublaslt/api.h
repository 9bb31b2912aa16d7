#pragma once
// cuBLASLt as it is called here: functions of libcublasLt.so, of CUDA 12 or 13.
#include <cublasLt.h>

#include <memory>
#include <string_view>

namespace russet::cuda {

/// Under cuBLASLt's names without "cublasLt".
struct CublasLtApi {
  decltype(&::cublasLtCreate) create;
  decltype(&::cublasLtGetStatusString) get_status_string;
  decltype(&::cublasLtGetVersion) get_version;
  decltype(&::cublasLtMatmul) matmul;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) matmul_algo_get_heuristic;
  decltype(&::cublasLtMatmulDescCreate) matmul_desc_create;
  decltype(&::cublasLtMatmulDescDestroy) matmul_desc_destroy;
  decltype(&::cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute;
  decltype(&::cublasLtMatrixLayoutCreate) matrix_layout_create;
  decltype(&::cublasLtMatrixLayoutDestroy) matrix_layout_destroy;
  decltype(&::cublasLtMatrixLayoutSetAttribute) matrix_layout_set_attribute;
  decltype(&::cublasLtMatmulPreferenceCreate) matmul_preference_create;
  decltype(&::cublasLtMatmulPreferenceDestroy) matmul_preference_destroy;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) matmul_preference_set_attribute;
};

/// Loaded at the first call. Throws DeviceError if there is no cuBLASLt, or one that is too old.
const CublasLtApi& cublaslt();

/// Throws DeviceError of what was being done unless the status is a success.
void check(cublasStatus_t status, std::string_view what);

}  // namespace russet::cuda
