#include "base/pool.h"
#include "graph/axis_order.h"
#include "graph/capture.h"
#include "graph/executor.h"
#include "graph/tensor_state.h"

namespace russet::graph {
void* Cell::operator new(std::size_t) { return base::ObjectPool<Cell>::allocate(); }
void Cell::operator delete(void* memory, std::size_t) { base::ObjectPool<Cell>::release(memory); }
void* TensorState::operator new(std::size_t) { return base::ObjectPool<TensorState>::allocate(); }
void TensorState::operator delete(void* memory, std::size_t) { base::ObjectPool<TensorState>::release(memory); }

// A long chain of views of views is taken apart in a loop.
TensorState::~TensorState() {
  while (parent && parent->reference_count() == 1) {
    Ref<TensorState> next = std::move(parent->parent);
    parent = std::move(next);
  }
}

Cell::Cell(NodeRef value) : now_{std::move(value)} {
  if (!now_.value->materialised()) Recorder::current().add(*this);
  if (Capture* const capture = Capture::current()) capture->note_new(*this);
}

Cell::~Cell() { Recorder::remove(*this); }

const Cell::Written& Cell::sound_before() const {
  for (std::size_t i = later_.size(); i-- > 0;) {
    if (!later_[i].value->failed()) return later_[i];
  }
  return before_.value && !before_.value->failed() ? before_ : now_;
}

void Cell::forget_failed_writes() {
  if (!now_.value->failed()) return;
  while (!later_.empty() && later_.back().value->failed()) later_.pop_back();
  if (!later_.empty()) {
    now_ = std::move(later_.back());
    later_.pop_back();
  } else if (before_.value && !before_.value->failed()) {
    now_ = std::exchange(before_, {});
  }
}

void Cell::write(NodeRef value) {
  Recorder& recorder = Recorder::current();
  // While a cell is in another thread's list, that thread's flushes look at it.
  if (pending_in_.load(std::memory_order_relaxed) != &recorder) Recorder::remove(*this);
  forget_failed_writes();
  if (now_.value->materialised()) {
    before_ = std::move(now_);
    later_.clear();
  } else if (!now_.value->failed()) {
    (before_.value ? later_.emplace_back() : before_) = std::move(now_);
  }
  now_ = {std::move(value), ++writes_};
  if (persistent_) now_.value->mark_persistent();
  if (!now_.value->materialised()) return recorder.add(*this);
  if (Capture* const capture = Capture::current()) capture->decline("it writes what is in memory already");
}

void Cell::reset(NodeRef leaf) {
  Recorder::remove(*this);
  now_ = {std::move(leaf), version()};
  before_ = {};
  later_.clear();
  if (persistent_) now_.value->mark_persistent();
}

void Cell::mark_persistent() {
  persistent_ = true;
  now_.value->mark_persistent();
}

void write_cell(Cell& cell, NodeRef value) {
  const NodeRef before = cell.value();
  cell.write(std::move(value));
  if (!before->materialised() || !before->buffer()->pinned()) return;
  const NodeRef after = cell.value();
  materialise(after);
  const Ref<Buffer> memory = before->buffer();
  executor_of(after->device).upload(*memory, {after->buffer()->data(), byte_size(*after)});
  cell.reset(make_ref<Node>(static_cast<const NodeInfo&>(*after), memory));
}

Tensor wrap(NodeRef value) {
  const Geometry geometry = Geometry::contiguous(value->shape);
  return wrap(std::move(value), geometry);
}

Tensor wrap(NodeRef value, Geometry geometry) {
  return Tensor(make_ref<TensorState>(make_ref<Cell>(std::move(value)), std::move(geometry), nullptr, true));
}

namespace {

/// Whether the view shows each element of the base once: where it begins follows from its strides then, while where a
/// part begins may change from step to step.
bool is_whole(const Geometry& geometry, const Node& base) {
  return numel(geometry.sizes) == numel(base.shape) && is_non_overlapping(geometry);
}

}  // namespace

NodeInfo view_info(const Geometry& geometry, const Node& base) {
  NodeInfo info;
  info.dtype = base.dtype;
  info.device = base.device;
  info.shape = geometry.sizes;
  const bool dynamic = base.materialised() && !is_whole(geometry, base);
  info.attributes = ops::View{geometry.strides, dynamic ? 0 : geometry.offset, dynamic};
  if (dynamic) info.argument = static_cast<std::uint64_t>(geometry.offset);
  return info;
}

NodeRef value_of(const Tensor& tensor) { return value_of(tensor, tensor.state()->geometry); }

NodeRef value_of(const Tensor& tensor, const Geometry& geometry) {
  const Cell& cell = *tensor.state()->cell;
  if (Capture* const capture = Capture::current()) capture->note_read(tensor.state()->cell);
  const NodeRef& value = cell.value();
  if (geometry.sizes == value->shape && covers(geometry, cell.numel())) return value;
  return record(ops::Op::strided, value, view_info(geometry, *value));
}

PackedTensor packed(const Tensor& tensor) {
  const Geometry& geometry = tensor.state()->geometry;
  if (is_contiguous(geometry)) return {value_of(tensor), {geometry.sizes, geometry.strides, 0}};
  const Strides strides = copy_strides(geometry);
  return {value_of(tensor, reordered(geometry, memory_order(strides))), {geometry.sizes, strides, 0}};
}

}  // namespace russet::graph
