#pragma once
// Which instruction sets the loops over pixels are compiled for: AVX-512, AVX2, and plain C++ for what is older; on
// Arm, NEON. Include this before anything of Highway.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
