#pragma once
// Pipeline: what CUDA runs for a launch: a kernel, or a call of one of NVIDIA's libraries.
#include <array>
#include <memory>
#include <span>

#include "base/function_ref.h"
#include "device/gpu/cuda/context.h"
#include "device/gpu/cuda/handles.h"
#include "device/gpu/launch.h"

namespace russet::cuda {

/// Blocks of a launch, and threads of a block.
struct Grid {
  std::array<std::uint32_t, 3> blocks{1, 1, 1};
  std::uint32_t threads = 32;
  bool operator==(const Grid&) const = default;
};

/// `arguments` point to what it takes: the addresses of its buffers, then its values.
class Pipeline : public gpu::Pipeline, public std::enable_shared_from_this<Pipeline> {
 public:
  /// Throws DeviceError.
  virtual void start(const Grid& grid, std::span<void*> arguments, CUstream stream) const = 0;
  /// The same, as a node of a graph that follows others. Throws DeviceError.
  virtual CUgraphNode add_to(CUgraph graph, std::span<const CUgraphNode> before, const Grid& grid,
                             std::span<void*> arguments) const = 0;
};

/// What libraries want of a workspace; memory of ours is aligned to 64 bytes.
inline constexpr std::size_t workspace_alignment = 256;
/// Bytes that an aligned workspace may take, and where it begins in them.
inline std::size_t padded_workspace(std::size_t bytes) { return bytes == 0 ? 0 : bytes + workspace_alignment; }
std::byte* aligned_workspace(std::byte* memory);

/// What `enqueue` gives to a stream that only records. Throws DeviceError.
void record(GraphHandle& graph, base::FunctionRef<void(CUstream)> enqueue);

/// A library's call, whose kernels a graph takes from a stream that only records.
class LibraryCall : public Pipeline {
 public:
  void start(const Grid& grid, std::span<void*> arguments, CUstream stream) const final;
  CUgraphNode add_to(CUgraph graph, std::span<const CUgraphNode> before, const Grid& grid,
                     std::span<void*> arguments) const final;

 protected:
  /// The library's own call. Throws DeviceError.
  virtual void enqueue(std::span<std::byte* const> addresses, CUstream stream) const = 0;
};

}  // namespace russet::cuda
