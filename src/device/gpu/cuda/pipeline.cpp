#include "device/gpu/cuda/pipeline.h"

#include <vector>

namespace russet::cuda {
namespace {

std::vector<std::byte*> addresses_of(std::span<void*> arguments) {
  std::vector<std::byte*> addresses;
  for (void* const argument : arguments) addresses.push_back(*static_cast<std::byte**>(argument));
  return addresses;
}

}  // namespace

std::byte* aligned_workspace(std::byte* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return memory + (workspace_alignment - address % workspace_alignment) % workspace_alignment;
}

void LibraryCall::start(const Grid& /*grid*/, std::span<void*> arguments, CUstream stream) const {
  enqueue(addresses_of(arguments), stream);
}

void record(GraphHandle& graph, base::FunctionRef<void(CUstream)> enqueue) {
  const Stream recorder;
  // Of this thread alone: others go on allocating and copying.
  check(api().stream_begin_capture(recorder.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "recording a library's call");
  try {
    enqueue(recorder.get());
  } catch (...) {
    api().stream_end_capture(recorder.get(), graph.address());
    throw;
  }
  check(api().stream_end_capture(recorder.get(), graph.address()), "recording a library's call");
}

CUgraphNode LibraryCall::add_to(CUgraph graph, std::span<const CUgraphNode> before, const Grid& /*grid*/,
                                std::span<void*> arguments) const {
  GraphHandle recorded;
  record(recorded, [&](CUstream stream) { enqueue(addresses_of(arguments), stream); });
  CUgraphNode node = nullptr;
  check(api().graph_add_child_graph_node(&node, graph, before.data(), before.size(), recorded.get()),
        "adding a library's call to a graph");
  return node;
}

}  // namespace russet::cuda
