#include "graph/closure.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>

#include "ops/table.h"

namespace russet::graph {
namespace {

std::uint64_t epoch = 0;  // guarded by the flush lock

}  // namespace

std::uint64_t flush_epoch() { return epoch; }
std::uint64_t start_epoch() { return ++epoch; }

void throw_device_mismatch(ops::Op op, std::span<const NodeRef> inputs) {
  std::string devices;
  for (const NodeRef& input : inputs) {
    if (input) devices += (devices.empty() ? "" : " and ") + to_string(input->device);
  }
  throw DeviceError(fmt::format("{}: the tensors are on different devices: {}. Move them with .to(device).",
                                ops::row(op).name, devices));
}

Work& Closure::take(std::vector<NodeRef>& outputs, const std::vector<Node*>& restorable) {
  clear();
  const Device device = outputs.front()->device;
  std::size_t others = 0;
  for (NodeRef& output : outputs) {
    if (output->device == device) {
      outputs_.push_back(std::move(output));
    } else {
      std::swap(outputs[others++], output);
    }
  }
  outputs.resize(others);
  work_.device = device;
  visit();
  order();
  find_donatable(restorable);
  return work_;
}

void Closure::clear() {
  work_.entries.clear();
  work_.further_inputs.clear();
  nodes_.clear();
  stack_.clear();
  hoisted_.clear();
  outputs_.clear();
}

void Closure::visit() {
  const std::uint64_t epoch = start_epoch();
  const auto push = [&](Node* node) {
    if (node->mark.epoch == epoch) {
      ++node->mark.uses;
      return;
    }
    if (node->failure()) throw Error(*node->failure());
    node->mark = {epoch, 0, 1};
    nodes_.push_back(node);
    stack_.push_back(node);
  };
  for (const NodeRef& output : outputs_) push(output.get());
  while (!stack_.empty()) {
    Node* node = stack_.back();
    stack_.pop_back();
    for (const NodeRef& input : node->inputs()) {
      if (input) push(input.get());
    }
  }
}

void Closure::order() {
  std::sort(nodes_.begin(), nodes_.end(), [](const Node* a, const Node* b) { return a->sequence() < b->sequence(); });
  work_.entries.reserve(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node* node = nodes_[i];
    node->mark.index = static_cast<std::int32_t>(i);
    Work::Entry entry;
    entry.node = node;
    entry.persistent = node->persistent && node->materialised();
    const std::span<const NodeRef> inputs = node->inputs();
    for (std::size_t input = 0; input < entry.inputs.size(); ++input) {
      if (inputs[input]) entry.inputs[input] = inputs[input]->mark.index;
    }
    for (const NodeRef& input : inputs.subspan(entry.inputs.size())) {
      work_.further_inputs.push_back(input->mark.index);
    }
    if (node->hoisted && !node->materialised() && inputs[0]->materialised()) {
      entry.output = true;
      hoisted_.push_back({inputs[0], NodeRef(node)});
      ++node->mark.uses;
      ++inputs[0]->mark.uses;
    }
    work_.entries.push_back(entry);
  }
  for (const NodeRef& output : outputs_) work_.entries[static_cast<std::size_t>(output->mark.index)].output = true;
}

void Closure::keep_hoisted() {
  for (Hoisted& hoisted : hoisted_) hoisted.leaf->kept_casts.push_back(std::move(hoisted.cast));
}

// A leaf may be overwritten when all its references are those that this work lets go of: inputs of nodes that die or
// become leaves, and the old values that cells kept for a failure.
void Closure::find_donatable(const std::vector<Node*>& restorable) {
  for (Node* node : restorable) {
    if (node->mark.epoch == nodes_.front()->mark.epoch) ++node->mark.uses;
  }
  survives_.assign(nodes_.size(), false);
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Work::Entry& entry = work_.entries[i];
    if (entry.node->materialised()) {
      entry.donatable = !survives_[i] && !entry.output && !entry.node->buffer()->pinned() &&
                        !entry.node->buffer()->shared() && entry.node->reference_count() == entry.node->mark.uses;
      continue;
    }
    if (entry.output) continue;
    if (entry.node->reference_count() > entry.node->mark.uses) survives_[i] = true;
    if (!survives_[i]) continue;
    for (const std::int32_t input : entry.inputs) {
      if (input >= 0) survives_[static_cast<std::size_t>(input)] = true;
    }
    for (const NodeRef& input : entry.node->inputs().subspan(entry.inputs.size())) {
      survives_[static_cast<std::size_t>(input->mark.index)] = true;
    }
  }
}

}  // namespace russet::graph
