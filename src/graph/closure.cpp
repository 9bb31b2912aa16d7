#include "graph/closure.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <condition_variable>

#include "graph/keeping.h"
#include "ops/table.h"

namespace russet::graph {
namespace {

/// Notified when a flush has computed its values or has failed. Used with graph_mutex().
std::condition_variable& values_settled() {
  static auto* const condition = new std::condition_variable;  // for flushes while the process exits
  return *condition;
}

}  // namespace

void throw_device_mismatch(ops::Op op, std::span<const NodeRef> inputs) {
  std::string devices;
  for (const NodeRef& input : inputs) {
    if (input) devices += (devices.empty() ? "" : " and ") + to_string(input->device);
  }
  throw DeviceError(fmt::format("{}: the tensors are on different devices: {}. Move them with .to(device).",
                                ops::row(op).name, devices));
}

const Work& Closure::take(std::vector<NodeRef>& outputs, const ForEachValue& restorable, std::size_t recorded,
                          Take amount) {
  let_go();
  {
    std::unique_lock lock(graph_mutex());
    while (true) {
      drop_settled_outputs();
      if (outputs_.empty()) choose_outputs(outputs, amount);
      if (outputs_.empty()) break;
      if (!visit(recorded)) {
        values_settled().wait(lock);
        continue;
      }
      if (std::any_of(visited_.begin(), visited_.end(), [](const Visited& v) { return v.node->failed(); })) {
        nodes_.list(order_);
        fail_dependants();
        continue;
      }
      find_survivors(restorable);
      hold_survivors();
      set_computing(true);
      break;
    }
  }
  leftovers_.clear();
  try {
    if (!outputs_.empty()) write_work();
  } catch (...) {
    const std::lock_guard lock(graph_mutex());
    set_computing(false);
    values_settled().notify_all();
    throw;
  }
  return work_;
}

void Closure::set_computing(bool computing) {
  const auto set = [&](Node& node) {
    if (!node.materialised() && !node.failed()) node.set_computing(computing);
  };
  for (const NodeRef& output : outputs_) set(*output);
}

void Closure::let_go() {
  work_.nodes.clear();
  work_.further_inputs.clear();
  held_.clear();
  outputs_.clear();
}

void Closure::choose_outputs(std::vector<NodeRef>& outputs, Take amount) {
  std::erase_if(outputs, [](const NodeRef& output) { return output->materialised() || output->failed(); });
  if (outputs.empty()) return;
  work_.device = outputs.front()->device;
  std::size_t others = 0;
  for (NodeRef& output : outputs) {
    const bool enough = amount == Take::one && !outputs_.empty();
    if (!enough && output->device == work_.device) {
      outputs_.push_back(std::move(output));
    } else {
      std::swap(outputs[others++], output);
    }
  }
  outputs.resize(others);
}

void Closure::drop_settled_outputs() {
  std::erase_if(outputs_, [&](NodeRef& output) {
    if (output->failed()) note_failure(output->failure());
    if (!output->materialised() && !output->failed()) return false;
    leftovers_.push_back(std::move(output));
    return true;
  });
}

/// The node's number; a new one when the node is seen for the first time.
std::int32_t Closure::meet(Node* node) {
  const std::int32_t number = nodes_.number_of(*node);
  if (static_cast<std::size_t>(number) == visited_.size()) {
    visited_.push_back({.node = node, .leaf = node->materialised()});
  }
  ++visited_[static_cast<std::size_t>(number)].uses;
  return number;
}

/// Everything that the outputs are computed from. False if another thread is computing some of it.
bool Closure::visit(std::size_t recorded) {
  constexpr std::size_t least_recent = 1024;
  std::uint64_t latest = 0;
  for (const NodeRef& output : outputs_) latest = std::max(latest, output->sequence());
  // A flush also reads values that were computed by the flush before it, or by the one before that.
  nodes_.start(latest, 3 * recorded + least_recent);
  visited_.clear();
  inputs_.clear();
  for (const NodeRef& output : outputs_) visited_[static_cast<std::size_t>(meet(output.get()))].output = true;
  learns_ = false;
  for (std::size_t number = 0; number < visited_.size(); ++number) {
    if (visited_[number].leaf) continue;
    const Node& node = *visited_[number].node;
    const Node::State state = node.state();
    if (state == Node::State::computing) return false;
    if (state == Node::State::failed) continue;
    learns_ |= node.learns();
    const std::size_t first = inputs_.size();
    for (const NodeRef& input : node.inputs()) inputs_.push_back(input ? meet(input.get()) : -1);
    visited_[number].first_input = static_cast<std::int32_t>(first);
    visited_[number].inputs = static_cast<std::uint32_t>(inputs_.size() - first);
  }
  return true;
}

/// Marks all nodes that depend on a failed value as failed, for the same reason.
void Closure::fail_dependants() {
  for (const std::int32_t number : order_) {
    Node& node = *visited_[static_cast<std::size_t>(number)].node;
    if (node.materialised() || node.failed()) continue;
    for (const std::int32_t input : inputs_of(number)) {
      if (input < 0 || !visited_[static_cast<std::size_t>(input)].node->failed()) continue;
      node.fail(visited_[static_cast<std::size_t>(input)].node->failure(), leftovers_);
      break;
    }
  }
}

void Closure::note_failure(const std::exception_ptr& failure) {
  if (std::find(failures_.begin(), failures_.end(), failure) == failures_.end()) failures_.push_back(failure);
}

void Closure::find_survivors(const ForEachValue& restorable) {
  restorable([&](Node& value) {
    const std::int32_t number = nodes_.find(value);
    if (number >= 0) ++visited_[static_cast<std::size_t>(number)].uses;
  });
  survivors_.clear();
  const auto keep = [&](std::size_t number) {
    Visited& visited = visited_[number];
    if (visited.survives) return;
    visited.survives = true;
    // Outputs become leaves and let go of their inputs.
    if (!visited.leaf && !visited.output) survivors_.push_back(static_cast<std::int32_t>(number));
  };
  for (std::size_t number = 0; number < visited_.size(); ++number) {
    if (visited_[number].node->reference_count() > visited_[number].uses) keep(number);
  }
  for (std::size_t i = 0; i < survivors_.size(); ++i) {
    for (const std::int32_t input : inputs_of(survivors_[i])) {
      if (input >= 0) keep(static_cast<std::size_t>(input));
    }
  }
}

/// Another thread may compute a survivor, too, and let go of its inputs then.
void Closure::hold_survivors() {
  for (const std::int32_t survivor : survivors_) {
    held_.emplace_back(visited_[static_cast<std::size_t>(survivor)].node);
    for (const std::int32_t input : inputs_of(survivor)) {
      if (input >= 0) held_.emplace_back(visited_[static_cast<std::size_t>(input)].node);
    }
  }
}

/// Nodes in record order, each leaf just before its first reader, so that the plan does not depend on when leaves were
/// made.
void Closure::write_work() {
  nodes_.list(recorded_);
  order_.clear();
  work_.nodes.reserve(recorded_.size());
  for (const std::int32_t number : recorded_) {
    if (!visited_[static_cast<std::size_t>(number)].leaf) write_node(number);
  }
}

WorkNode& Closure::add_node(std::int32_t number) {
  Visited& visited = visited_[static_cast<std::size_t>(number)];
  visited.position = static_cast<std::int32_t>(order_.size());
  order_.push_back(number);
  WorkNode& made = work_.nodes.emplace_back();
  made.recorded = visited.node;
  made.output = visited.output;
  return made;
}

void Closure::write_leaf(std::int32_t number) {
  const Visited& visited = visited_[static_cast<std::size_t>(number)];
  const Buffer& memory = *visited.node->buffer();
  WorkNode& made = add_node(number);
  made.leaf = true;
  made.steady = !learns_ && is_steady(*visited.node);
  made.donatable = !visited.survives && !memory.pinned() && !memory.shared();
}

void Closure::write_node(std::int32_t number) {
  const std::span<const std::int32_t> inputs = inputs_of(number);
  for (const std::int32_t input : inputs) {
    if (input >= 0 && visited_[static_cast<std::size_t>(input)].position < 0) write_leaf(input);
  }
  WorkNode& made = add_node(number);
  made.again = made.recorded->again;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] < 0) continue;
    const std::int32_t position = visited_[static_cast<std::size_t>(inputs[i])].position;
    if (i < made.inputs.size()) {
      made.inputs[i] = position;
    } else {
      work_.further_inputs.push_back(position);
      ++made.further_inputs;
    }
  }
}

void Closure::settle(Outcome& outcome, std::vector<NodeRef>& outputs) {
  {
    const std::lock_guard lock(graph_mutex());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (!outcome.results[i]) continue;
      Node& node = *visited_[static_cast<std::size_t>(order_[i])].node;
      node.materialise(std::move(outcome.results[i]), leftovers_);
    }
    for (const auto* positions : {&outcome.culprits, &outcome.overwritten}) {
      for (const std::int32_t position : *positions) {
        Node& node = *visited_[static_cast<std::size_t>(order_[static_cast<std::size_t>(position)])].node;
        if (!node.failed()) node.fail(outcome.failure, leftovers_);
      }
    }
    if (outcome.failure) fail_dependants();
    set_computing(false);
    for (NodeRef& output : outputs_) {
      if (output->failed()) note_failure(output->failure());
      if (output->state() == Node::State::pending) outputs.push_back(std::move(output));
    }
  }
  values_settled().notify_all();
  leftovers_.clear();
  let_go();
}

void publish(const Work& work, std::span<const NodeRef> nodes, Outcome& outcome) {
  Leftovers leftovers;
  {
    const std::lock_guard lock(graph_mutex());
    for (std::size_t i = 0; i < work.nodes.size(); ++i) {
      if (!work.nodes[i].output) continue;
      if (outcome.results[i]) {
        nodes[i]->materialise(std::move(outcome.results[i]), leftovers);
      } else {
        nodes[i]->fail(outcome.failure, leftovers);
      }
    }
    for (const std::int32_t position : outcome.overwritten) {
      nodes[static_cast<std::size_t>(position)]->fail(outcome.failure, leftovers);
    }
  }
  values_settled().notify_all();
}

}  // namespace russet::graph
