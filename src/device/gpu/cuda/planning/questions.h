#pragma once
// What NVIDIA's libraries are asked of contractions, and what they are not.
#include <span>
#include <string>

#include "device/gpu/gpu_kernel.h"

namespace russet::cuda {

/// "9.19.0" of 91900, as NVIDIA's libraries count.
std::string version_text(std::size_t version);

/// Below, a launch takes longer than the work, and our own kernels take what comes before and after it as well.
inline constexpr double fewest_operations = 1e5;
/// Why a library declines what our own split product is faster at.
inline constexpr const char* faster_product = "our own product on tensor cores is faster";
/// Why a library declines what our own stationary product is faster at, unless it is to run what follows.
inline constexpr const char* narrow_product = "our own product of a small depth is faster";
/// Why a library declines what our own warpgroup product is as fast at, which runs what follows at the same time.
inline constexpr const char* own_product = "our own product runs what follows at the same time";
/// Whether libraries are asked for contractions of the type.
bool is_asked_of(DType dtype);
/// Why no library is asked for a contraction: another primitive, types, an epilogue or a prologue, too little work.
/// Empty if one is.
std::string why_not_asked(const compile::Primitive& primitive);
/// The contraction without what comes after it; the result is stored as the epilogue stores it.
compile::Primitive without_epilogue(const compile::Primitive& contraction);
/// Of memory of ours, where each of these regions begins: a power of two, at most 16 bytes.
std::uint32_t alignment_of(std::span<const gpu::Region> regions);
/// The regions of the first two inputs and of the output; empty if an operand lies backwards.
std::vector<gpu::Region> regions_of(const compile::Primitive& contraction);

}  // namespace russet::cuda
