#pragma once
// Handles of CUDA that end with what holds them.
#include "device/gpu/cuda/api.h"

namespace russet::cuda {

class GraphHandle {
 public:
  GraphHandle() = default;
  ~GraphHandle() {
    if (graph_ != nullptr) api().graph_destroy(graph_);
  }
  GraphHandle(const GraphHandle&) = delete;
  GraphHandle& operator=(const GraphHandle&) = delete;

  CUgraph get() const { return graph_; }
  /// Where CUDA writes it.
  CUgraph* address() { return &graph_; }

 private:
  CUgraph graph_ = nullptr;
};

/// A stream that waits for no other.
class Stream {
 public:
  Stream() { check(api().stream_create(&stream_, CU_STREAM_NON_BLOCKING), "making a stream"); }
  ~Stream() { api().stream_destroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  CUstream get() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

}  // namespace russet::cuda
