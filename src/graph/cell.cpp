#include "base/pool.h"
#include "graph/axis_order.h"
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

Cell::Cell(NodeRef value) : value_(std::move(value)) {
  if (!value_->materialised()) Recorder::current().add(*this);
}

Cell::~Cell() { Recorder::remove(*this); }

const NodeRef& Cell::last_sound() const {
  for (std::size_t i = later_.size(); i-- > 0;) {
    if (!later_[i]->failed()) return later_[i];
  }
  return before_ && !before_->failed() ? before_ : value_;
}

std::uint64_t Cell::version() const {
  const NodeRef& current = value();
  if (current == value_) return version_;
  std::uint64_t undone = 1;
  for (std::size_t i = later_.size(); i-- > 0 && later_[i] != current;) ++undone;
  return version_ - undone;
}

void Cell::forget_failed_writes() {
  if (!value_->failed()) return;
  version_ = version();
  NodeRef sound = value();
  if (sound == before_) {
    before_.reset();
    later_.clear();
  } else {
    while (!later_.empty() && later_.back() != sound) later_.pop_back();
    if (!later_.empty()) later_.pop_back();
  }
  value_ = std::move(sound);
}

void Cell::write(NodeRef value) {
  Recorder& recorder = Recorder::current();
  // While a cell is in another thread's list, that thread's flushes look at it.
  if (pending_in_.load(std::memory_order_relaxed) != &recorder) Recorder::remove(*this);
  forget_failed_writes();
  if (value_->materialised()) {
    before_ = std::move(value_);
    later_.clear();
  } else if (!value_->failed()) {
    (before_ ? later_.emplace_back() : before_) = std::move(value_);
  }
  value_ = std::move(value);
  if (persistent_) value_->mark_persistent();
  ++version_;
  if (!value_->materialised()) recorder.add(*this);
}

void Cell::reset(NodeRef leaf) {
  Recorder::remove(*this);
  before_.reset();
  later_.clear();
  value_ = std::move(leaf);
  if (persistent_) value_->mark_persistent();
}

void Cell::mark_persistent() {
  persistent_ = true;
  value_->mark_persistent();
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

NodeInfo view_info(const Geometry& geometry, const Node& base) {
  NodeInfo info;
  info.dtype = base.dtype;
  info.device = base.device;
  info.shape = geometry.sizes;
  const bool dynamic = base.materialised() && !covers(geometry, numel(base.shape));
  info.attributes = ops::View{geometry.strides, dynamic ? 0 : geometry.offset, dynamic};
  if (dynamic) info.argument = static_cast<std::uint64_t>(geometry.offset);
  return info;
}

NodeRef value_of(const Tensor& tensor) { return value_of(tensor, tensor.state()->geometry); }

NodeRef value_of(const Tensor& tensor, const Geometry& geometry) {
  const Cell& cell = *tensor.state()->cell;
  const NodeRef& value = cell.value();
  if (geometry.sizes == value->shape && covers(geometry, cell.numel())) return value;
  return record(ops::Op::strided, value, view_info(geometry, *value));
}

Image image_of(const Tensor& tensor) {
  const Geometry& geometry = tensor.state()->geometry;
  if (is_contiguous(geometry)) return {value_of(tensor), {geometry.sizes, geometry.strides, 0}};
  const Strides strides = copy_strides(geometry);
  return {value_of(tensor, reordered(geometry, memory_order(strides))), {geometry.sizes, strides, 0}};
}

}  // namespace russet::graph
