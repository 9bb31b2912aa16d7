#pragma once
// Queue: where a GPU's interface takes work. The timeline fills it, submission after submission.
#include <memory>
#include <span>
#include <string>

#include "base/range_set.h"
#include "device/gpu/launch.h"
#include "graph/executor.h"

namespace russet::gpu {

/// Work that was submitted. Destroyed when it has completed: what it alone read is given back then.
class Submission {
 public:
  virtual ~Submission() = default;
  virtual bool is_done() const = 0;
  virtual void wait() const = 0;
  /// Of work that is done: the seconds that it took on the GPU; 0 if nobody asked (Queue::keep_times).
  virtual double seconds() const = 0;
  /// Of work that is done: why it failed; empty if it did not.
  virtual std::string failure() const = 0;
};

/// Launches that a queue keeps, to encode them again.
class Encoded {
 public:
  virtual ~Encoded() = default;
  virtual std::span<const Binding> bindings() const = 0;
  /// Whether a plan's run-time arguments are in parameters alone, and not in where buffers begin.
  virtual bool takes_other_arguments() const = 0;
};

/// Work is encoded between begin() and submit() and runs later, each submission after the one before. Within one,
/// launches between two barriers may run at once. Not thread-safe.
class Queue {
 public:
  virtual ~Queue() = default;
  /// Whether a submission is best what a flush launches, however long it takes.
  virtual bool keeps_flushes_whole() const { return false; }
  virtual void begin() = 0;
  virtual void encode(const Launch& launch) = 0;
  virtual void barrier() = 0;
  /// Whether the seconds of later submissions will be asked for. A queue to which they are nothing extra always has
  /// them.
  virtual void keep_times(bool /*keeps*/) {}
  /// Whether it can encode launches again.
  virtual bool keeps_launches() const { return false; }
  /// The launches that were encoded since begin(), of a queue that keeps them.
  virtual std::shared_ptr<const Encoded> encoded() const { return nullptr; }
  /// Encodes these, first of all since begin(), with these run-time arguments, if they take others.
  virtual void repeat(std::shared_ptr<const Encoded> /*encoded*/, std::span<const std::uint64_t> /*arguments*/) {}
  /// Copies to the GPU's memory after the submissions so far, before the launches of this one; `source` is free at
  /// once. Says whether it will: not while too much is under way.
  virtual bool upload(std::byte* /*target*/, std::span<const std::byte> /*source*/) { return false; }
  /// Likewise, from memory that the backend granted for it, and that the submission keeps until it has completed.
  virtual void upload_staged(std::byte* /*target*/, const graph::StagingMemory& /*source*/, std::size_t /*bytes*/) {}
  /// Fills the GPU's memory with zeros, like upload().
  virtual bool clear(std::byte* /*target*/, std::size_t /*bytes*/) { return false; }
  virtual std::unique_ptr<Submission> submit() = 0;
  /// What was encoded since begin() never runs.
  virtual void drop() = 0;
  /// Takes work again after a submission failed, for this reason. Throws DeviceError if it cannot.
  virtual void restart(const std::string& reason) = 0;

  // For a queue that checks lifetimes of values (DeviceDriver::tracks_values).
  /// A value begins here with the next launch that touches the range, as far as it does.
  virtual void begin_value(base::ByteRange /*range*/) {}
  /// The host wrote the range, or its memory starts a new life.
  virtual void forget_value(base::ByteRange /*range*/) {}
  /// All work has completed: values that began and that no launch touched have nothing in them.
  virtual void finish_values() {}
};

}  // namespace russet::gpu
