// The dialect for NVIDIA's GPUs: NVRTC compiles a kernel's text after this, for sm_90 (docs/devices/dialect.md has its
// options). No standard header is included; what is included are texts of this folder, which NVRTC is given by name,
// each standing on those before it. Functions without an execution space are the device's
// (--device-as-default-execution-space).
#pragma once
#define UNROLL _Pragma("unroll")
// clang-format off
#include "cuda/scalars.h"
#include "shared/half.h"
#include "cuda/vectors.h"
#include "shared/half_vectors.h"
#include "cuda/integers.h"
#include "cuda/math.h"
#include "cuda/simdgroup.h"
#include "cuda/matrix.h"
#include "cuda/tile.h"
#include "cuda/fragments.h"
#include "cuda/arrivals.h"
#include "cuda/warpgroups.h"
#include "cuda/warpgroup_product.h"
#include "cuda/atomics.h"
#include "shared/each.h"
#include "cuda/entry.h"
// clang-format on

// Metal's qualifiers: CUDA's pointers are generic. Values lie in constant memory all the same (entry.h).
#define device
#define threadgroup
#define thread
#define constant const
