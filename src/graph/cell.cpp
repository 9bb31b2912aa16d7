#include "base/pool.h"
#include "graph/executor.h"
#include "graph/tensor_state.h"

namespace russet::graph {
namespace {

template <class T>
base::ObjectPool& pool_of() {
  static auto* objects = new base::ObjectPool(sizeof(T));
  return *objects;
}

}  // namespace

void* Cell::operator new(std::size_t) { return pool_of<Cell>().allocate(); }
void Cell::operator delete(void* memory, std::size_t) { pool_of<Cell>().release(memory); }
void* TensorState::operator new(std::size_t) { return pool_of<TensorState>().allocate(); }
void TensorState::operator delete(void* memory, std::size_t) { pool_of<TensorState>().release(memory); }

Cell::Cell(NodeRef value) : value_(std::move(value)) {
  if (!value_->materialised()) Recorder::current().add(*this);
}

Cell::~Cell() { Recorder::remove(*this); }

void Cell::write(NodeRef value) {
  if (value_->materialised() && !last_materialised_) last_materialised_ = value_;
  value_ = std::move(value);
  value_->persistent |= persistent_;
  ++version_;
  if (!value_->materialised()) Recorder::current().add(*this);
}

void Cell::reset(NodeRef leaf) {
  Recorder::remove(*this);
  last_materialised_.reset();
  value_ = std::move(leaf);
  value_->persistent |= persistent_;
}

void Cell::mark_persistent() {
  persistent_ = true;
  value_->persistent = true;
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
  return Tensor(make_ref<TensorState>(make_ref<Cell>(std::move(value)), geometry, nullptr, true));
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

NodeRef value_of(const Tensor& tensor) {
  const TensorState& state = *tensor.state();
  const NodeRef& value = state.cell->value();
  if (state.geometry.sizes == value->shape && covers(state.geometry, state.cell->numel())) return value;
  return record(ops::Op::strided, value, view_info(state.geometry, *value));
}

}  // namespace russet::graph
