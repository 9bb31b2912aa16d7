#include "autograd/saved_tensors.h"

#include <fmt/format.h>
#include <russet/error.h>

namespace russet::autograd {

void throw_freed(std::string_view name) {
  throw AutogradError(fmt::format(
      "backward: the saved values of `{}` were freed by an earlier backward(). Pass retain_graph = true to the "
      "earlier call if you need the graph twice.",
      name));
}

void SavedTensors::add(const Tensor& tensor, Edge edge) { add(tensor, std::move(edge), false); }

void SavedTensors::add_result(const Tensor& tensor, std::uint32_t result) { add(tensor, {{}, {}, result}, true); }

void SavedTensors::add(const Tensor& tensor, Edge edge, bool is_result) {
  graph::PackedTensor packed;
  if (tensor.defined()) packed = graph::packed(tensor);
  nodes_.push_back(std::move(packed.node));
  views_.push_back({std::move(packed.geometry), std::move(edge), is_result});
}

std::vector<graph::NodeRef> SavedTensors::nodes_or_throw(const TapeEntry& entry) const {
  const std::lock_guard lock(lock_);
  if (released_ && !views_.empty()) throw_freed(entry.name());
  return nodes_;
}

std::vector<Tensor> SavedTensors::get(TapeEntry& entry) const {
  const std::vector<graph::NodeRef> nodes = nodes_or_throw(entry);
  std::vector<Tensor> tensors(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i]) continue;
    const SavedView& place = views_[i];
    const Edge edge = place.is_result ? Edge{Ref<TapeEntry>(&entry), nullptr, place.edge.result} : place.edge;
    tensors[i] = connected(nodes[i], place.geometry, edge);
  }
  return tensors;
}

void SavedTensors::release() {
  std::vector<graph::NodeRef> nodes;  // destroyed when the lock is free again
  const std::lock_guard lock(lock_);
  released_ = true;
  nodes.swap(nodes_);
}

}  // namespace russet::autograd
