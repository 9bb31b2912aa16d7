#include "device/gpu/driver/timeline.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>

namespace russet::gpu {
namespace {

/// Long enough that the cost of a submission does not show, short enough that the host does not wait long and that
/// other programs get their share of the GPU.
constexpr double wanted_seconds = 0.008;
constexpr int shortest = 8;
constexpr int first_length = 64;
constexpr int longest = 1024;
/// More submissions in flight bring nothing; Metal allows 64.
constexpr std::size_t most_in_flight = 16;

/// Whether the launch reads the memory, or adds to what an earlier launch wrote there.
bool reads(const Binding& binding) { return !binding.writes || binding.continues; }

base::ByteRange range_of(const Binding& binding) { return base::range_of(binding.address, binding.bytes); }

}  // namespace

Timeline::Timeline(std::unique_ptr<Queue> queue, std::string device,
                   std::function<void(const Ref<graph::Buffer>&)> end_borrowing)
    : queue_(std::move(queue)),
      device_(std::move(device)),
      end_borrowing_(std::move(end_borrowing)),
      length_(first_length) {}

Timeline::~Timeline() {
  submit();
  for (const auto& batch : in_flight_) batch->submission->wait();
  for (const auto& batch : in_flight_) take_back(*batch);
}

void Timeline::launch(const Launch& launch) {
  if (!open_) begin();
  refuse_what_is_lost(launch);
  queue_->encode(launch);
  note(launch);
  if (queue_->keeps_flushes_whole()) return;
  if (open_->launches >= length_ || open_->modelled >= wanted_seconds) submit();
}

bool Timeline::repeat(const Recording& recording, std::span<const std::uint64_t> arguments) {
  if (open_ && open_->launches > 0) return false;
  if (!open_) begin();
  if (!lost_.empty()) return false;
  queue_->repeat(recording.encoded, arguments);
  for (const base::ByteRange range : recording.reads) open_->reads.add(range);
  for (const base::ByteRange range : recording.writes) open_->writes.add(range);
  open_->launches = recording.launches;
  launched_since_barrier_ = true;
  return true;
}

void Timeline::start_recording() {
  recorded_.reset();
  if (!open_ || open_->launches == 0) recorded_ = submissions_;
}

std::optional<Recording> Timeline::recording() const {
  if (!open_ || recorded_ != submissions_) return std::nullopt;
  Recording recording{queue_->encoded(), {}, {}, open_->launches};
  for (const Binding& binding : recording.encoded->bindings()) {
    if (binding.writes) recording.writes.add(range_of(binding));
    if (reads(binding)) recording.reads.add(range_of(binding));
  }
  return recording;
}

void Timeline::begin() {
  settle();
  if (in_flight_.size() >= most_in_flight) in_flight_[in_flight_.size() - most_in_flight]->submission->wait();
  settle();
  queue_->begin();
  open_ = std::make_unique<Batch>();
  launched_since_barrier_ = false;
}

void Timeline::refuse_what_is_lost(const Launch& launch) {
  if (lost_.empty()) return;
  for (const Binding& binding : launch.buffers) {
    if (reads(binding) && lost_.overlaps(range_of(binding))) tell_failure();
  }
  for (const Binding& binding : launch.buffers) {
    if (binding.writes) lost_.remove(range_of(binding));
  }
}

void Timeline::note(const Launch& launch) {
  for (const Binding& binding : launch.buffers) {
    if (binding.writes) open_->writes.add(range_of(binding));
    if (reads(binding)) open_->reads.add(range_of(binding));
  }
  ++open_->launches;
  open_->modelled += launch.seconds;
  launched_since_barrier_ = true;
}

void Timeline::barrier() {
  if (!launched_since_barrier_) return;
  queue_->barrier();
  launched_since_barrier_ = false;
}

bool Timeline::write(base::ByteRange range, base::FunctionRef<bool()> enqueue) {
  if (open_ && conflicts(*open_, range, HostAccess::write)) submit();
  if (!open_) begin();
  if (!enqueue()) return false;
  open_->writes.add(range);
  return true;
}

bool Timeline::upload(std::byte* target, std::span<const std::byte> source) {
  return write(base::range_of(target, source.size()), [&] { return queue_->upload(target, source); });
}

void Timeline::upload_staged(std::byte* target, const graph::StagingMemory& source, std::size_t bytes) {
  write(base::range_of(target, bytes), [&] {
    queue_->upload_staged(target, source, bytes);
    return true;
  });
}

void Timeline::finish_copies(const graph::StagingMemory& source) {
  settle();
  while (source.use_count() > 1 && (open_ || !in_flight_.empty())) {
    if (in_flight_.empty()) submit();
    in_flight_.front()->submission->wait();
    settle();
  }
}

bool Timeline::clear(std::byte* target, std::size_t bytes) {
  return write(base::range_of(target, bytes), [&] { return queue_->clear(target, bytes); });
}

void Timeline::submit() {
  if (!open_) return;
  open_->submission = queue_->submit();
  ++submissions_;
  in_flight_.push_back(std::move(open_));
  launched_since_barrier_ = false;
}

bool Timeline::conflicts(const Batch& batch, base::ByteRange range, HostAccess access) {
  return batch.writes.overlaps(range) || (access == HostAccess::write && batch.reads.overlaps(range));
}

void Timeline::end_borrowing(const Ref<graph::Buffer>& lender) {
  settle();
  const base::ByteRange range = base::range_of(lender->data(), lender->bytes());
  if (open_ && conflicts(*open_, range, HostAccess::write)) return open_->lenders.push_back(lender);
  for (auto batch = in_flight_.rbegin(); batch != in_flight_.rend(); ++batch) {
    if (conflicts(**batch, range, HostAccess::write)) return (*batch)->lenders.push_back(lender);
  }
  end_borrowing_(lender);
}

void Timeline::take_back(Batch& batch) {
  for (const Ref<graph::Buffer>& lender : batch.lenders) end_borrowing_(lender);
  batch.lenders.clear();
  batch.submission.reset();
}

void Timeline::wait_for(base::ByteRange range, HostAccess access) {
  if (open_ && conflicts(*open_, range, access)) submit();
  for (std::size_t i = in_flight_.size(); i-- > 0;) {
    if (!conflicts(*in_flight_[i], range, access)) continue;
    for (std::size_t j = 0; j <= i; ++j) in_flight_[j]->submission->wait();
    break;
  }
  settle();
}

bool Timeline::is_idle(base::ByteRange range) {
  settle();
  const auto writes = [&](const Batch& batch) { return conflicts(batch, range, HostAccess::read); };
  const bool pending =
      (open_ && writes(*open_)) || std::ranges::any_of(in_flight_, [&](const auto& batch) { return writes(*batch); });
  return !pending && !lost_.overlaps(range);
}

void Timeline::finish() {
  submit();
  for (const auto& batch : in_flight_) batch->submission->wait();
  settle();
}

void Timeline::synchronize() {
  finish();
  queue_->finish_values();
  if (failure_is_new_) tell_failure();
}

void Timeline::tell_failure() {
  failure_is_new_ = false;
  std::rethrow_exception(failure_);
}

void Timeline::settle() {
  while (!in_flight_.empty()) {
    Batch& batch = *in_flight_.front();
    if (!batch.submission->is_done()) return;
    if (const std::string reason = batch.submission->failure(); !reason.empty()) return fail(reason);
    adapt(batch);
    take_back(batch);
    in_flight_.pop_front();
  }
}

// Batches that were cut short by submit() say as much about a launch's time as long ones.
void Timeline::adapt(const Batch& batch) {
  const double seconds = batch.submission->seconds();
  seconds_ += seconds;
  if (batch.launches == 0 || seconds <= 0) return;
  const double measured = seconds / batch.launches;
  seconds_per_launch_ = seconds_per_launch_ == 0 ? measured : 0.75 * seconds_per_launch_ + 0.25 * measured;
  length_ = static_cast<int>(std::clamp(wanted_seconds / seconds_per_launch_, double{shortest}, double{longest}));
}

// The first failure is the reason; what was submitted after it ran on its results or not at all.
void Timeline::fail(const std::string& reason) {
  failure_ = std::make_exception_ptr(
      DeviceError(fmt::format("{}: the GPU gave up on work that had been started: {}. Values that it should have "
                              "written are lost until they are set again.",
                              device_, reason)));
  failure_is_new_ = true;
  if (open_) {
    queue_->drop();
    ++submissions_;
    in_flight_.push_back(std::move(open_));
    launched_since_barrier_ = false;
  }
  for (const auto& batch : in_flight_) {
    if (batch->submission) batch->submission->wait();
    for (const base::ByteRange range : batch->writes) lost_.add(range);
    take_back(*batch);
  }
  in_flight_.clear();
  queue_->restart(reason);
}

void Timeline::check(base::ByteRange range) const {
  if (!lost_.empty() && lost_.overlaps(range)) std::rethrow_exception(failure_);
}

void Timeline::forget(base::ByteRange range) {
  lost_.remove(range);
  queue_->forget_value(range);
}

}  // namespace russet::gpu
