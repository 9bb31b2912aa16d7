#pragma once
// Timeline: launches become submissions to a queue, and what each of them touches, or lost when it failed, is known by
// address.
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/range_set.h"
#include "device/gpu/driver/queue.h"
#include "graph/buffer.h"

namespace russet::gpu {

/// All launches of a submission, and what they touch.
struct Recording {
  std::shared_ptr<const Encoded> encoded;
  base::RangeSet reads;
  base::RangeSet writes;
  int launches = 0;
};

/// Not thread-safe: the driver locks. Memory handed to it may be overwritten or freed by the host only after
/// wait_for.
class Timeline {
 public:
  /// `device`: its name in messages. `end_borrowing` is called with a lender whose memory no work reads any more.
  Timeline(std::unique_ptr<Queue> queue, std::string device,
           std::function<void(const Ref<graph::Buffer>&)> end_borrowing);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Encodes a launch, and submits when there is enough. Throws DeviceError if it would read, or continue, what failed
  /// work left undefined.
  void launch(const Launch& launch);
  void barrier();
  /// Whether launches can be repeated.
  bool keeps_launches() const { return queue_->keeps_launches(); }
  /// Launches all of that, with these run-time arguments of its plan. Says whether it did: not while launches wait to
  /// be submitted, or something is lost.
  bool repeat(const Recording& recording, std::span<const std::uint64_t> arguments);
  /// What is launched from now on is for recording().
  void start_recording();
  /// What was launched since then, if all of it is what the next submission launches.
  std::optional<Recording> recording() const;
  /// Has the queue copy to the GPU's memory, in the order of the launches. Says whether it does; otherwise the host
  /// waits for the range and copies.
  bool upload(std::byte* target, std::span<const std::byte> source);
  void upload_staged(std::byte* target, const graph::StagingMemory& source, std::size_t bytes);
  /// Waits until nothing copies from the memory, which the caller holds once.
  void finish_copies(const graph::StagingMemory& source);
  /// Has it fill memory with zeros, like upload().
  bool clear(std::byte* target, std::size_t bytes);
  void submit();
  /// See Queue::begin_value.
  void begin_value(base::ByteRange range) { queue_->begin_value(range); }

  enum class HostAccess : std::uint8_t { read, write };
  /// Waits until the host may read or write the range: until no work that was launched touches it in conflict.
  void wait_for(base::ByteRange range, HostAccess access);
  /// Whether the host may read the range at once: no work that was launched writes it, and none that failed did.
  bool is_idle(base::ByteRange range);
  /// No later launch reads the lender's memory: it is released when the launches so far have completed.
  void end_borrowing(const Ref<graph::Buffer>& lender);
  /// Waits for everything.
  void finish();
  /// Likewise. Throws what went wrong since the last call, if launch() has not.
  void synchronize();

  /// Throws what went wrong if what lies in the range was lost with it.
  void check(base::ByteRange range) const;
  /// The host wrote the range, or its memory starts a new life.
  void forget(base::ByteRange range);

  /// See Queue::keep_times.
  void keep_times(bool keeps) { queue_->keep_times(keeps); }
  /// GPU time of all work that has completed, as far as times were kept.
  double gpu_seconds() const { return seconds_; }

 private:
  /// What `enqueue` gives, which has the queue write the range.
  bool write(base::ByteRange range, base::FunctionRef<bool()> enqueue);

  /// What is submitted together.
  struct Batch {
    base::RangeSet reads;
    base::RangeSet writes;
    std::vector<Ref<graph::Buffer>> lenders;  // whose memory its launches are the last to read
    int launches = 0;
    double modelled = 0;                     // seconds that the launches take at least
    std::unique_ptr<Submission> submission;  // nullptr while it is being encoded, or if it never runs
  };

  static bool conflicts(const Batch& batch, base::ByteRange range, HostAccess access);
  void begin();
  void refuse_what_is_lost(const Launch& launch);
  void note(const Launch& launch);
  void take_back(Batch& batch);
  /// Takes completed work off the list, learns from its times, and deals with a failure.
  void settle();
  void adapt(const Batch& batch);
  void fail(const std::string& reason);
  [[noreturn]] void tell_failure();

  std::unique_ptr<Queue> queue_;
  std::string device_;
  std::function<void(const Ref<graph::Buffer>&)> end_borrowing_;
  std::unique_ptr<Batch> open_;  // is being encoded
  bool launched_since_barrier_ = false;
  std::deque<std::unique_ptr<Batch>> in_flight_;
  std::uint64_t submissions_ = 0;
  std::optional<std::uint64_t> recorded_;  // the number of the submission that is being recorded
  int length_;                             // launches that a batch gets at most, as measured
  double seconds_ = 0;
  double seconds_per_launch_ = 0;
  base::RangeSet lost_;         // what failed work should have written
  std::exception_ptr failure_;  // the last one
  bool failure_is_new_ = false;
};

}  // namespace russet::gpu
