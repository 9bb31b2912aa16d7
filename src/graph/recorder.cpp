#include "graph/recorder.h"

#include <russet/error.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <utility>

#include "graph/capture.h"
#include "graph/closure.h"
#include "graph/counters.h"
#include "graph/executor.h"
#include "graph/saved_set.h"
#include "graph/tensor_state.h"

namespace russet::graph {
namespace {

/// More pending nodes than this are computed without waiting for a mark; a training step of the largest models here
/// records some ten thousand. Within in_one_plan, where marks do nothing, more may be pending.
constexpr std::size_t pending_limit = 50'000;
constexpr std::size_t deferred_limit = 1'000'000;

/// Adds the time of a flush to the counters.
class FlushTimer {
 public:
  using Clock = std::chrono::steady_clock;
  FlushTimer() = default;
  FlushTimer(const FlushTimer&) = delete;
  FlushTimer& operator=(const FlushTimer&) = delete;
  ~FlushTimer() {
    const std::chrono::nanoseconds spent = Clock::now() - start_;
    engine_counters().flush_ns.fetch_add(static_cast<std::uint64_t>(spent.count()), std::memory_order_relaxed);
  }

 private:
  Clock::time_point start_ = Clock::now();
};

/// Sets a flag for as long as it lives.
class Raised {
 public:
  explicit Raised(bool& flag) : flag_(flag) { flag_ = true; }
  ~Raised() { flag_ = false; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  bool& flag_;
};

/// The failure as a russet::Error; other exceptions are wrapped in one.
std::exception_ptr as_error(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error&) {
    return failure;
  } catch (const std::bad_alloc&) {
    return std::make_exception_ptr(
        OutOfMemoryError("out of memory: the host has none left to prepare this work. Use a smaller batch?"));
  } catch (const std::exception& error) {
    return std::make_exception_ptr(InternalError(error.what()));
  }
}

/// Recorders of threads that have ended. Never destroyed: threads may end after static destructors.
struct Idle {
  base::SpinLock lock;
  std::vector<Recorder*> recorders;
};
Idle& idle() {
  static auto* const all = new Idle;
  return *all;
}

}  // namespace

/// What flushes work with, kept so that the next one allocates nothing.
class Recorder::Scratch {
 public:
  std::vector<NodeRef> outputs;
  std::vector<NodeRef> released;
  Closure closure;
  SavedSet saved_set;
  Outcome outcome;
};

/// Lends a thread a recorder until it ends.
class ThreadsRecorder {
 public:
  explicit ThreadsRecorder(Recorder*& place) : place_(place) { place_ = take(); }
  ~ThreadsRecorder() {
    Recorder* const recorder = std::exchange(place_, nullptr);
    recorder->abandon();
    const std::lock_guard lock(idle().lock);
    idle().recorders.push_back(recorder);
  }
  ThreadsRecorder(const ThreadsRecorder&) = delete;
  ThreadsRecorder& operator=(const ThreadsRecorder&) = delete;

  static Recorder* take() {
    const std::lock_guard lock(idle().lock);
    if (idle().recorders.empty()) return new Recorder;
    Recorder* const recorder = idle().recorders.back();
    idle().recorders.pop_back();
    return recorder;
  }

 private:
  Recorder*& place_;
};

Recorder::Recorder() : scratch_(std::make_unique<Scratch>()) {}
Recorder::~Recorder() = default;

Recorder& Recorder::current() {
  static thread_local Recorder* current = nullptr;  // without a destructor, so that no call has to look for one
  if (Recorder* const recorder = current) return *recorder;
  static thread_local const ThreadsRecorder lent(current);
  // Destructors of static and thread-local objects may record, too, after the thread has given its recorder back.
  if (current == nullptr) current = ThreadsRecorder::take();
  return *current;
}

void Recorder::add(Cell& cell) {
  if (cell.pending_in_.load(std::memory_order_relaxed) == this) return;
  remove(cell);
  const std::lock_guard lock(lock_);
  cell.pending_position_ = cells_.size();
  cells_.push_back(&cell);
  cell.pending_in_.store(this, std::memory_order_release);
}

void Recorder::remove(Cell& cell) {
  while (Recorder* const owner = cell.pending_in_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(owner->lock_);
    if (cell.pending_in_.load(std::memory_order_relaxed) != owner) continue;
    owner->cells_[cell.pending_position_] = nullptr;
    cell.pending_in_.store(nullptr, std::memory_order_release);
  }
}

void Recorder::add(SavedNodes& saved) {
  const std::lock_guard lock(lock_);
  saved.saved_position_ = saved_.size();
  saved_.push_back(&saved);
  saved.saved_in_.store(this, std::memory_order_release);
}

void Recorder::remove(SavedNodes& saved) {
  while (Recorder* const owner = saved.saved_in_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(owner->lock_);
    if (saved.saved_in_.load(std::memory_order_relaxed) != owner) continue;
    owner->saved_[saved.saved_position_] = nullptr;
    saved.saved_in_.store(nullptr, std::memory_order_release);
  }
}

SavedNodes::~SavedNodes() { Recorder::remove(*this); }
void SavedNodes::register_saved() { Recorder::current().add(*this); }
void SavedNodes::unregister_saved() { Recorder::remove(*this); }

void Recorder::count_node() {
  const std::size_t limit = obeys_marks() ? pending_limit : deferred_limit;
  if (++nodes_ > limit && !flushing_) compute();
}

void Recorder::count_nodes() {
  engine_counters().nodes_recorded.fetch_add(nodes_, std::memory_order_relaxed);
  nodes_ = 0;
}

void Recorder::collect(const NodeRef& also) {
  Scratch& s = *scratch_;
  s.outputs.clear();
  s.saved_set.clear();
  const auto is_pending = [](const NodeRef& node) { return !node->materialised() && !node->failed(); };
  {
    const std::lock_guard lock(lock_);
    for (const Cell* cell : cells_) {
      if (!cell) continue;
      if (is_pending(cell->value())) s.outputs.push_back(cell->value());
    }
    for (const SavedNodes* saved : saved_) {
      if (!saved) continue;
      for (const NodeRef& node : saved->saved()) s.saved_set.add(node);
    }
  }
  if (also && is_pending(also)) s.outputs.push_back(also);
  s.saved_set.choose(s.outputs);
}

/// Visits the previous values of pending cells, which cells fall back on if a flush fails. Other threads remove a cell
/// from this list before they write to it, so `lock_` suffices.
void Recorder::for_each_restorable(base::FunctionRef<void(Node&)> visit) {
  const std::lock_guard lock(lock_);
  for (const Cell* cell : cells_) {
    if (!cell) continue;
    // After a failed write, the previous value is the cell's present one: it is held anyway.
    const NodeRef& value = cell->value();
    if (cell->before_.value && cell->before_.value != value) visit(*cell->before_.value);
    for (const Cell::Written& later : cell->later_) {
      if (later.value != value) visit(*later.value);
    }
  }
}

namespace {

/// Reports outputs that the executor neither computed nor reported as failed: they would be flushed again forever.
void refuse_omissions(const Work& work, Outcome& outcome) {
  for (std::size_t i = 0; i < work.nodes.size(); ++i) {
    if (work.nodes[i].output && !outcome.results[i]) outcome.culprits.push_back(static_cast<std::int32_t>(i));
  }
  if (outcome.culprits.empty()) return;
  outcome.failure = std::make_exception_ptr(InternalError("a device left out a value that it was to compute"));
}

/// Runs the work, and leaves what became of it in `outcome`.
void execute(const Work& work, Outcome& outcome) {
  outcome.clear(work.nodes.size());
  try {
    executor_of(work.device).execute(work, outcome);
  } catch (...) {
    outcome.failure = std::current_exception();
  }
  if (!outcome.failure) refuse_omissions(work, outcome);
  if (outcome.failure) outcome.failure = as_error(outcome.failure);
}

}  // namespace

void Recorder::compute_collected() {
  Scratch& s = *scratch_;
  const auto restorable = [this](base::FunctionRef<void(Node&)> visit) { for_each_restorable(visit); };
  auto amount = Closure::Take::all_of_a_device;
  while (true) {
    const Work& work = s.closure.take(s.outputs, restorable, nodes_, amount);
    if (work.nodes.empty()) return;
    if (capture_) {
      const std::lock_guard lock(lock_);
      capture_->note_work(work, cells_);
    }
    execute(work, s.outcome);
    if (s.outcome.failure && s.outcome.culprits.empty()) {
      // The executor does not know which node failed: from now on outputs are computed one at a time to find out.
      std::vector<std::int32_t>& culprits = s.outcome.culprits;
      for (std::size_t i = 0; i < work.nodes.size(); ++i) {
        if (work.nodes[i].output && !s.outcome.results[i]) culprits.push_back(static_cast<std::int32_t>(i));
      }
      if (culprits.size() > 1) culprits.clear();
      amount = Closure::Take::one;
    }
    s.closure.settle(s.outcome, s.outputs);
  }
}

void Recorder::compute(const NodeRef& also) {
  if (flushing_) throw InternalError("flush: called from within a flush");
  if (capture_) capture_->note_flush();
  const FlushTimer timer;
  const Raised raised(flushing_);
  ++flushes_;
  std::vector<std::exception_ptr>& failures = scratch_->closure.failures();
  try {
    // A cell whose last write failed falls back on the value before it, which may be pending as well.
    do {
      failures.clear();
      collect(also);
      compute_collected();
      for (const std::exception_ptr& failure : failures) note_failure(failure);
    } while (!failures.empty());
  } catch (...) {
    std::rethrow_exception(as_error(std::current_exception()));
  }
  release();
  count_nodes();
}

void Recorder::compute_again(const Work& work, std::span<NodeRef> nodes, Outcome& outcome) {
  {
    const FlushTimer timer;
    const Raised raised(flushing_);
    execute(work, outcome);
    publish(work, nodes, outcome);
  }
  // Memory is then given back in the order of the outputs, in which the next run takes it: so addresses come again.
  for (std::size_t i = 0; i < work.nodes.size(); ++i) {
    if (work.nodes[i].leaf) nodes[i].reset();
  }
  release();
  if (outcome.failure) std::rethrow_exception(outcome.failure);
}

void Recorder::tell() {
  if (untold_.empty()) return;
  const std::exception_ptr first = untold_.front().failure;
  untold_.clear();
  std::rethrow_exception(first);
}

std::vector<Recorder::UntoldFailure>::iterator Recorder::find_untold(const std::exception_ptr& failure) {
  return std::find_if(untold_.begin(), untold_.end(), [&](const UntoldFailure& u) { return u.failure == failure; });
}

void Recorder::note_failure(const std::exception_ptr& failure) {
  if (find_untold(failure) == untold_.end()) untold_.push_back({failure, flushes_});
}

void Recorder::note_told(const std::exception_ptr& failure) {
  const auto told = find_untold(failure);
  if (told == untold_.end()) return;
  std::erase_if(untold_, [flush = told->flush](const UntoldFailure& u) { return u.flush == flush; });
}

void Recorder::release() {
  Scratch& s = *scratch_;
  {
    const std::lock_guard lock(lock_);
    std::size_t kept = 0;
    for (Cell* cell : cells_) {
      if (!cell) continue;
      const NodeRef& value = cell->value();
      if (!value->materialised() && !value->failed()) {  // another thread is computing it
        cell->pending_position_ = kept;
        cells_[kept++] = cell;
        continue;
      }
      // If the last write failed, `value` is an earlier one, and the cell still needs it.
      if (value == cell->now_.value) {
        if (cell->before_.value) s.released.push_back(std::move(cell->before_.value));
        for (Cell::Written& later : cell->later_) s.released.push_back(std::move(later.value));
        cell->later_.clear();
      }
      cell->pending_in_.store(nullptr, std::memory_order_release);
    }
    cells_.resize(kept);
    for (SavedNodes* saved : saved_) {
      if (saved) saved->saved_in_.store(nullptr, std::memory_order_release);
    }
    saved_.clear();
  }
  s.released.clear();  // outside of the lock: it destroys nodes
  s.outputs.clear();
}

/// The thread ends: what is pending is computed by whoever reads it.
void Recorder::abandon() {
  {
    const std::lock_guard lock(lock_);
    for (Cell* cell : cells_) {
      if (cell) cell->pending_in_.store(nullptr, std::memory_order_release);
    }
    for (SavedNodes* saved : saved_) {
      if (saved) saved->saved_in_.store(nullptr, std::memory_order_release);
    }
    cells_.clear();
    saved_.clear();
  }
  count_nodes();
  deferrals_ = 0;
  untold_.clear();
}

void flush() {
  Recorder& recorder = Recorder::current();
  recorder.compute();
  recorder.tell();
}

void mark() {
  if (Recorder::current().obeys_marks()) flush();
}

Deferral::Deferral() { ++Recorder::current().deferrals_; }
Deferral::~Deferral() { --Recorder::current().deferrals_; }

void require_sound(const Node& node) {
  if (!node.failed()) return;
  Recorder::current().note_told(node.failure());
  std::rethrow_exception(node.failure());
}

void materialise(const NodeRef& node) {
  if (Capture* const capture = Capture::current()) capture->note_flush();
  require_sound(*node);
  if (!node->materialised()) Recorder::current().compute(node);
  require_sound(*node);
  executor_of(node->device).synchronize();
}

}  // namespace russet::graph
