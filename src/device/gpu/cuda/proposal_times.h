#pragma once
// How long a library's proposals take, measured on the GPU: what the table of proposals is made of.
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/pipeline.h"
#include "device/gpu/gpu_kernel.h"

namespace russet::cuda {

/// What a number of a proposal means something for.
struct LibraryVersion {
  std::string name;     // "cudnn"
  std::string version;  // "9.19.0"
  int capability = 0;   // of the GPU: 90 is 9.0
};
/// "cudnn 9.19.0 sm_90".
std::string to_string(const LibraryVersion& library);

/// Of a question: cuDNN has some 20 for a convolution, cuBLASLt 8 for a product.
inline constexpr std::size_t most_proposals = 32;

/// Whether RUSSET_PROPOSALS=measure asks for each question's proposals to be measured when it is first asked.
bool measures_proposals();

/// A call, and the workspace that it wants.
struct Proposal {
  std::shared_ptr<const LibraryCall> call;
  std::size_t workspace_bytes = 0;
};

/// Runs the calls in turn on memory of their own, of the regions' sizes, and logs what they take. Returns the fastest:
/// the first, unless another one is faster by what noise does not explain. Throws DeviceError.
std::size_t fastest_of(const Context& context, const LibraryVersion& library, std::string_view question,
                       std::span<const gpu::Region> regions, std::span<const Proposal> proposals);

}  // namespace russet::cuda
