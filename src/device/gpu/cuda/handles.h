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

/// A point of a stream, and when it was reached.
class Event {
 public:
  Event() { check(api().event_create(&event_, CU_EVENT_DEFAULT), "making an event"); }
  ~Event() { api().event_destroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  CUevent get() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

}  // namespace russet::cuda
