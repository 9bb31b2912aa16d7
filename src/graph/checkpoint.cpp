#include "graph/checkpoint.h"

#include <atomic>
#include <utility>

#include "graph/recorder.h"

namespace russet::graph {
namespace {

thread_local std::uint32_t innermost = 0;
thread_local RecordedAgain* recorded_again = nullptr;

std::uint32_t next_checkpoint() {
  static std::atomic<std::uint32_t> next{0};
  std::uint32_t number = 0;
  while (number == 0 || number == Node::checkpoint_result) number = next.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

}  // namespace

Checkpoint::Checkpoint() : number_(next_checkpoint()), around_(std::exchange(innermost, number_)) {}
Checkpoint::~Checkpoint() { innermost = around_; }
std::uint32_t Checkpoint::current() { return innermost; }

void Checkpoint::release(Node& result) const {
  if (result.checkpoint() == number_) result.set_checkpoint(around_ != 0 ? around_ : Node::checkpoint_result);
}

RecordedAgain::RecordedAgain() : around_(std::exchange(recorded_again, this)) {}
RecordedAgain::~RecordedAgain() { recorded_again = around_; }

/// Inputs first, in a loop: a recursion a node would overflow the stack.
NodeRef RecordedAgain::of(const NodeRef& node) {
  const auto is_copied = [&](const Node& other) {
    return !other.in_checkpoint() || other.materialised() || other.failed() || copies_.contains(&other);
  };
  std::vector<NodeRef> waiting{node};
  while (!waiting.empty()) {
    const NodeRef next = waiting.back();
    const std::size_t before = waiting.size();
    if (!is_copied(*next)) {
      const std::lock_guard lock(graph_mutex());
      for (const NodeRef& input : next->inputs()) {
        if (input && !is_copied(*input)) waiting.push_back(input);
      }
    }
    if (waiting.size() > before) continue;
    waiting.pop_back();
    if (!is_copied(*next)) copies_.emplace(next.get(), Copy{next, copy_of(next)});
  }
  const auto copy = copies_.find(node.get());
  return copy == copies_.end() ? node : copy->second.node;
}

NodeRef RecordedAgain::copy_of(const NodeRef& node) {
  std::vector<NodeRef> inputs;
  {
    const std::lock_guard lock(graph_mutex());
    if (node->materialised() || node->failed()) return node;  // by another thread, meanwhile
    for (const NodeRef& input : node->inputs()) {
      const auto copy = copies_.find(input.get());
      inputs.push_back(copy == copies_.end() ? input : copy->second.node);
    }
  }
  Recorder::current().count_node();
  NodeRef copy = make_ref<Node>(NodeInfo(*node), std::move(inputs));
  copy->again = true;
  copy->set_checkpoint(Checkpoint::current());
  return copy;
}

NodeRef computed_again(const NodeRef& node) {
  if (!node->in_checkpoint()) return node;
  if (recorded_again != nullptr) return recorded_again->of(node);
  RecordedAgain alone;
  return alone.of(node);
}

}  // namespace russet::graph
