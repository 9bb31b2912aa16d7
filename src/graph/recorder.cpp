#include "graph/recorder.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>

#include "graph/closure.h"
#include "graph/counters.h"
#include "graph/executor.h"
#include "graph/saved_set.h"
#include "graph/tensor_state.h"
#include "ops/table.h"

namespace russet::graph {
namespace {

/// More pending nodes than this are computed without waiting for a mark; a training step of the largest models here
/// records some ten thousand.
constexpr std::size_t pending_limit = 50'000;

/// Closures share the marks in nodes: one flush at a time.
std::mutex& flush_lock() {
  static std::mutex mutex;
  return mutex;
}

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

}  // namespace

Recorder& Recorder::current() {
  static thread_local Recorder* current = nullptr;  // without a destructor, so that no call has to look for one
  if (current == nullptr) {
    thread_local const auto recorder = make_ref<Recorder>();
    current = recorder.get();
  }
  return *current;
}

void Recorder::add(Cell& cell) {
  if (cell.pending_in_.get() == this) return;
  remove(cell);
  const std::lock_guard lock(lock_);
  cell.pending_in_ = Ref<Recorder>(this);
  cell.pending_slot_ = cells_.size();
  cells_.push_back(&cell);
}

void Recorder::remove(Cell& cell) {
  const Ref<Recorder> owner = std::move(cell.pending_in_);
  if (!owner) return;
  const std::lock_guard lock(owner->lock_);
  if (cell.pending_slot_ < owner->cells_.size() && owner->cells_[cell.pending_slot_] == &cell) {
    owner->cells_[cell.pending_slot_] = nullptr;
  }
}

void Recorder::add(SavedNodes& saved) {
  const std::lock_guard lock(lock_);
  saved.saved_in_ = Ref<Recorder>(this);
  saved.saved_slot_ = saved_.size();
  saved_.push_back(&saved);
}

void Recorder::remove(SavedNodes& saved) {
  const Ref<Recorder> owner = std::move(saved.saved_in_);
  if (!owner) return;
  const std::lock_guard lock(owner->lock_);
  if (saved.saved_slot_ < owner->saved_.size() && owner->saved_[saved.saved_slot_] == &saved) {
    owner->saved_[saved.saved_slot_] = nullptr;
  }
}

SavedNodes::~SavedNodes() { Recorder::remove(*this); }
void SavedNodes::register_saved() { Recorder::current().add(*this); }
void SavedNodes::unregister_saved() { Recorder::remove(*this); }

void Recorder::count_node() {
  if (++nodes_ > pending_limit && !flushing_) flush();
}

void Recorder::count_nodes() {
  engine_counters().nodes_recorded.fetch_add(nodes_, std::memory_order_relaxed);
  nodes_ = 0;
}

void Recorder::collect(const NodeRef& also) {
  pending_.outputs.clear();
  pending_.restorable.clear();
  const std::lock_guard lock(lock_);
  for (const Cell* cell : cells_) {
    if (!cell) continue;
    if (!cell->value_->materialised()) pending_.outputs.push_back(cell->value_);
    if (cell->last_materialised_) pending_.restorable.push_back(cell->last_materialised_.get());
  }
  if (also && !also->materialised()) pending_.outputs.push_back(also);
  // One for all threads: the flush lock is held.
  static SavedSet& saved_set = *new SavedSet;
  saved_set.clear();
  for (const SavedNodes* saved : saved_) {
    if (!saved) continue;
    for (const NodeRef& node : saved->saved()) saved_set.add(node);
  }
  saved_set.choose(pending_.outputs);
}

void Recorder::compute() {
  // One for all threads: the flush lock is held.
  static Closure& closure = *new Closure;
  try {
    while (!pending_.outputs.empty()) {
      Work& work = closure.take(pending_.outputs, pending_.restorable);
      executor_of(work.device).execute(work);
      closure.keep_hoisted();
    }
  } catch (...) {
    closure.clear();
    throw;
  }
  closure.clear();
}

void Recorder::flush(const NodeRef& also) {
  if (flushing_) throw InternalError("flush: called from within a flush");
  const std::lock_guard lock(flush_lock());
  const FlushTimer timer;
  flushing_ = true;
  try {
    collect(also);
    compute();
    settle();
  } catch (const Error& error) {
    restore(error.what());
    throw;
  } catch (const std::bad_alloc&) {
    const char* const message = "out of memory: the host has none left to prepare this work. Use a smaller batch?";
    restore(message);
    throw OutOfMemoryError(message);
  } catch (const std::exception& error) {
    restore(error.what());
    throw InternalError(error.what());
  }
  count_nodes();
  flushing_ = false;
}

void Recorder::mark() {
  if (deferrals_ == 0) flush();
}

void Recorder::settle() {
  {
    const std::lock_guard lock(lock_);
    for (Cell* cell : cells_) {
      if (!cell) continue;
      cell->pending_in_.reset();
      if (cell->last_materialised_) released_.push_back(std::move(cell->last_materialised_));
    }
    cells_.clear();
    for (SavedNodes* saved : saved_) {
      if (saved) saved->saved_in_.reset();
    }
    saved_.clear();
  }
  released_.clear();  // outside of the lock: it destroys nodes
  pending_.outputs.clear();
}

void Recorder::restore(const std::string& error) {
  {
    const std::lock_guard lock(lock_);
    for (Cell* cell : cells_) {
      if (!cell || cell->value_->materialised()) continue;
      if (cell->last_materialised_ && !cell->last_materialised_->failure()) {
        cell->value_ = cell->last_materialised_;
      } else {
        cell->value_->fail(error);
      }
    }
  }
  settle();
  count_nodes();
  flushing_ = false;
}

namespace {

/// Of an operator on the inputs that there are, at most `most`.
template <std::size_t most, class Inputs>
NodeRef recorded(ops::Op op, Inputs&& inputs, NodeInfo&& given) {
  std::array<ops::Description, most> descriptions;
  std::array<const ops::Description*, most> pointers{};
  std::size_t count = 0;
  for (; count < inputs.size() && inputs[count]; ++count) {
    const Node& input = *inputs[count];
    if (input.failure()) throw Error(*input.failure());
    descriptions[count] = {input.dtype, input.shape};
    pointers[count] = &descriptions[count];
    if (count > 0 && !(input.device == inputs[0]->device)) throw_device_mismatch(op, inputs);
  }
  const ops::Description result =
      ops::infer(op, {pointers.data(), count}, given.attributes, {given.dtype, given.shape});
  given.op = op;
  given.dtype = result.dtype;
  given.shape = result.shape;
  if (count > 0) {
    given.device = inputs[0]->device;
  } else if (given.device.type != DeviceType::cpu) {
    executor_of(given.device);  // throws where there is no such device
  }
  Recorder::current().count_node();
  return make_ref<Node>(std::move(given), std::forward<Inputs>(inputs));
}

}  // namespace

NodeRef record(ops::Op op, NodeRefs inputs, NodeInfo given) {
  return recorded<3>(op, std::move(inputs), std::move(given));
}

NodeRef record_many(ops::Op op, std::vector<NodeRef> inputs, NodeInfo given) {
  if (inputs.size() > ops::max_inputs) {
    throw InternalError(fmt::format("{}: {} inputs, and no operator has as many", ops::row(op).name, inputs.size()));
  }
  return recorded<ops::max_inputs>(op, std::move(inputs), std::move(given));
}

NodeRef record_cast(NodeRef input, DType dtype, bool hoist) {
  if (input->dtype == dtype) return input;
  const bool keep = hoist && input->persistent && input->materialised();
  if (keep) {
    for (const NodeRef& kept : input->kept_casts) {
      if (kept->dtype == dtype) return kept;
    }
  }
  NodeInfo info;
  info.dtype = dtype;
  NodeRef cast = record(ops::Op::cast, std::move(input), std::move(info));
  cast->hoisted = keep;
  return cast;
}

NodeRef scalar(Scalar value, DType dtype, Device device) {
  NodeInfo info;
  info.dtype = dtype;
  info.device = device;
  info.argument = is_floating(dtype) ? std::bit_cast<std::uint64_t>(value.to_double())
                                     : static_cast<std::uint64_t>(value.to_int64());
  return record(ops::Op::scalar, NodeRefs{}, std::move(info));
}

NodeRef constant(Scalar value, DType dtype, Device device, const Shape& shape) {
  NodeInfo info;
  info.dtype = dtype;
  info.device = device;
  info.shape = shape;
  if (dtype == DType::boolean) {
    info.attributes = ops::Number{0, value.to_double() != 0};
  } else {
    info.attributes = is_floating(dtype) ? ops::Number{value.to_double(), 0} : ops::Number{0, value.to_int64()};
  }
  return record(ops::Op::constant, NodeRefs{}, std::move(info));
}

void flush() { Recorder::current().flush(); }

void mark() { Recorder::current().mark(); }

Deferral::Deferral() { ++Recorder::current().deferrals_; }
Deferral::~Deferral() { --Recorder::current().deferrals_; }

void materialise(const NodeRef& node) {
  if (node->failure()) throw Error(*node->failure());
  if (!node->materialised()) Recorder::current().flush(node);
  executor_of(node->device).synchronize();
  if (node->failure()) throw Error(*node->failure());
}

}  // namespace russet::graph
