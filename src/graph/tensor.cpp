// Tensor: what a handle answers and how values enter and leave. Views, writes and gradients are elsewhere.
#include <fmt/format.h>
#include <russet/runtime.h>
#include <russet/tensor.h>

#include <algorithm>

#include "graph/counters.h"
#include "graph/executor.h"
#include "graph/in_memory.h"
#include "graph/keeping.h"
#include "graph/tensor_state.h"

namespace russet {
namespace {

const graph::TensorState& defined_state(const Ref<graph::TensorState>& state) {
  if (!state) throw ValueError("an undefined tensor was used: it was declared but nothing was assigned to it");
  return *state;
}

/// Gives the cell a copy of its value that is its own alone.
void stop_sharing(graph::Cell& cell) {
  const graph::NodeRef value = cell.value();
  graph::Executor& executor = graph::executor_of(value->device);
  const Ref<graph::Buffer> own = executor.allocate(value->device, graph::byte_size(*value));
  executor.upload(*own, {value->buffer()->data(), graph::byte_size(*value)});
  cell.reset(make_ref<graph::Node>(static_cast<const graph::NodeInfo&>(*value), own));
}

/// Exports the memory of a cell's value. The caller may write to it, so pending reads of the value and tensors that are
/// saved for gradients keep a copy of the present elements, and what is kept with the value is dropped.
void expose(graph::Cell& cell) {
  const std::uint32_t own = 1;  // the cell's reference
  const graph::NodeRef& value = cell.value();
  if (value->buffer()->pinned()) return;
  if (value->buffer()->shared() || value->reference_count() > own) stop_sharing(cell);
  cell.value()->buffer()->pin();
  graph::drop_kept(*cell.value());
}

/// The node of a leaf whose elements lie in row-major order from `offset` on, or a copy of the elements.
graph::NodeRef readable(const Tensor& tensor, std::int64_t& offset) {
  const graph::TensorState& state = defined_state(tensor.state());
  const graph::NodeRef value = state.cell->value();
  offset = 0;
  if (is_contiguous(state.geometry)) {
    graph::materialise(value);
    offset = state.geometry.offset;
    return value;
  }
  graph::NodeRef copy = graph::value_of(tensor);
  graph::materialise(copy);
  return copy;
}

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype());
}

}  // namespace

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, const Shape& shape, const TensorOptions& options) {
  const std::size_t needed = static_cast<std::size_t>(russet::numel(shape)) * size_of(options.dtype);
  if (bytes.size() != needed) {
    throw ShapeError(fmt::format("Tensor::from: shape {} of {} takes {} bytes, {} were given", russet::to_string(shape),
                                 name_of(options.dtype), needed, bytes.size()));
  }
  return graph::tensor_in_memory(
      shape, options, [&](graph::Executor& executor, graph::Buffer& memory) { executor.upload(memory, bytes); });
}

Tensor Tensor::cleared(const Shape& shape, const TensorOptions& options) {
  return graph::tensor_in_memory(shape, options,
                                 [](graph::Executor& executor, graph::Buffer& memory) { executor.clear(memory); });
}

const Shape& Tensor::sizes() const { return defined_state(state_).geometry.sizes; }
const Strides& Tensor::strides() const { return defined_state(state_).geometry.strides; }
std::int64_t Tensor::size(std::int64_t axis) const { return sizes()[wrap_axis(axis, dim())]; }
std::int64_t Tensor::stride(std::int64_t axis) const { return strides()[wrap_axis(axis, dim())]; }
std::int64_t Tensor::storage_offset() const { return defined_state(state_).geometry.offset; }
DType Tensor::dtype() const { return defined_state(state_).cell->value()->dtype; }
Device Tensor::device() const { return defined_state(state_).cell->value()->device; }
bool Tensor::is_contiguous() const { return graph::is_contiguous(defined_state(state_).geometry); }
std::uint64_t Tensor::version() const { return defined_state(state_).cell->version(); }
bool Tensor::is_pending() const {
  const graph::Node& value = *defined_state(state_).cell->value();
  return !value.materialised() && !value.failed();
}

void throw_no_host_memory(std::size_t bytes) {
  throw OutOfMemoryError(fmt::format("out of memory: the host has none left for {} bytes", bytes));
}

bool Tensor::shares_storage(const Tensor& other) const {
  return defined_state(state_).cell == defined_state(other.state_).cell;
}

void Tensor::copy_to(std::span<std::byte> bytes) const {
  std::int64_t offset = 0;
  const graph::NodeRef node = readable(*this, offset);
  const std::size_t needed = bytes_of(*this);
  if (bytes.size() != needed) {
    throw ShapeError(fmt::format("copy_to: {} bytes are needed, {} were given", needed, bytes.size()));
  }
  if (needed == 0) return;
  graph::executor_of(device()).download(*node->buffer(), static_cast<std::size_t>(offset) * size_of(dtype()), bytes);
}

void Tensor::visit_bytes(std::size_t most_bytes, const std::function<void(std::span<const std::byte>)>& take) const {
  if (most_bytes == 0) throw ValueError("visit_bytes: pieces of 0 bytes were asked for; ask for at least 1");
  std::int64_t offset = 0;
  const graph::NodeRef node = readable(*this, offset);
  const std::size_t first = static_cast<std::size_t>(offset) * size_of(dtype());
  const std::size_t all = bytes_of(*this);
  auto memory = host_vector<std::byte>(std::min(most_bytes, all));
  for (std::size_t begin = 0; begin < all; begin += memory.size()) {
    const auto piece = std::span(memory).first(std::min(memory.size(), all - begin));
    graph::executor_of(device()).download(*node->buffer(), first + begin, piece);
    take(piece);
  }
}

std::vector<std::byte> Tensor::to_bytes() const {
  auto bytes = host_vector<std::byte>(bytes_of(*this));
  copy_to(bytes);
  return bytes;
}

void* Tensor::data() const {
  if (!is_contiguous()) throw ValueError("data: the tensor is not contiguous; call contiguous() first");
  if (device().type != DeviceType::cpu && device().type != DeviceType::reference) {
    throw DeviceError(fmt::format("data: the memory of {} is not the host's; move the tensor with .to(Device(\"cpu\"))",
                                  russet::to_string(device())));
  }
  graph::Cell& cell = *state_->cell;
  graph::materialise(cell.value());
  expose(cell);
  const auto offset = static_cast<std::size_t>(state_->geometry.offset);
  return cell.value()->buffer()->data() + offset * size_of(dtype());
}

void Tensor::require_single_element() const {
  if (numel() == 1) return;
  throw ShapeError(
      fmt::format("item: the tensor has {} elements (shape {}), not one", numel(), russet::to_string(sizes())));
}

namespace graph {

Tensor moved(const Tensor& tensor, Device device) {
  const TensorState& state = defined_state(tensor.state());
  const NodeRef value = state.cell->value();
  if (is_contiguous(state.geometry) && covers(state.geometry, state.cell->numel())) {
    materialise(value);
    if (Ref<Buffer> memory = executor_of(device).borrow(device, value->buffer())) {
      NodeInfo info = *value;
      info.device = device;
      info.shape = state.geometry.sizes;
      return wrap(make_ref<Node>(std::move(info), std::move(memory)));
    }
  }
  return Tensor::from_bytes(tensor.to_bytes(), tensor.sizes(), {tensor.dtype(), device});
}

}  // namespace graph

void mark_persistent(const Tensor& tensor) { defined_state(tensor.state()).cell->mark_persistent(); }

}  // namespace russet
