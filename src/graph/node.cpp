#include "graph/node.h"

#include <russet/error.h>

#include "base/hash.h"
#include "base/pool.h"
#include "ops/attributes_hash.h"

namespace russet::graph {
namespace {

std::atomic<std::uint64_t> next_sequence{1};

std::uint64_t hash_of(ops::Op op, DType dtype, std::uint64_t shape) {
  return base::mix(static_cast<std::uint64_t>(op) * 131 + static_cast<std::uint64_t>(dtype), shape);
}

}  // namespace

Node::Node(const NodeInfo& info, NodeRefs inputs)
    : NodeInfo(info),
      inputs_(std::move(inputs)),
      sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)),
      shape_hash_(base::mix(0, shape)),
      hash_(base::mix(hash_of(op, dtype, shape_hash_), ops::hash_of(attributes))) {}

Node::Node(const NodeInfo& info, std::vector<NodeRef> inputs) : Node(info, NodeRefs{}) {
  if (inputs.size() > inputs_.size()) {
    rare_ = std::make_unique<Rare>();
    rare_->inputs = std::move(inputs);
  } else {
    std::move(inputs.begin(), inputs.end(), inputs_.begin());
  }
}

Node::Node(const NodeInfo& info, Ref<Buffer> buffer)
    : NodeInfo(info),
      buffer_(std::move(buffer)),
      sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)),
      shape_hash_(base::mix(0, shape)),
      state_(State::ready) {
  op = ops::Op::leaf;
  attributes = {};
  argument = 0;
  hash_ = leaf_hash();
}

void* Node::operator new(std::size_t) { return base::ObjectPool<Node>::allocate(); }
void Node::operator delete(void* memory, std::size_t) { base::ObjectPool<Node>::release(memory); }

Node::~Node() { let_go_of_inputs(); }

std::uint64_t Node::leaf_hash() const { return hash_of(ops::Op::leaf, dtype, shape_hash_); }

namespace {

/// The nodes that the thread is about to destroy, while it destroys some. Not inline: as in base/pool.h.
[[gnu::noinline]] NodeRef*& doomed_nodes() {
  static thread_local NodeRef* doomed = nullptr;
  return doomed;
}

}  // namespace

// Long chains of nodes are taken apart in a loop: one recursion a node would overflow the stack. Nodes that nobody
// else holds wait in a list that runs through themselves, so that this allocates nothing.
void Node::let_go_of_inputs() {
  if (!inputs_[0] && !rare_) return;
  NodeRef*& doomed = doomed_nodes();
  NodeRef list;
  const bool outermost = doomed == nullptr;
  if (outermost) doomed = &list;
  NodeRef& waiting = *doomed;
  const auto let_go = [&](NodeRef& input) {
    if (input && input->reference_count() == 1) {
      input->next_doomed_ = std::move(waiting);
      waiting = std::move(input);
    }
    input.reset();  // NOLINT: what was moved from is empty
  };
  for (NodeRef& input : inputs_) let_go(input);
  if (rare_) {
    for (NodeRef& input : rare_->inputs) let_go(input);
    rare_->inputs.clear();
  }
  if (!outermost) return;
  while (list) {
    const NodeRef last = std::move(list);
    list = std::move(last->next_doomed_);
  }
  doomed = nullptr;
}

void Node::materialise(Ref<Buffer> buffer, Leftovers& leftovers) {
  buffer_ = std::move(buffer);
  set(State::ready);
  give_up_inputs(leftovers);
}

void Node::fail(std::exception_ptr failure, Leftovers& leftovers) {
  rare().failure = std::move(failure);
  set(State::failed);
  give_up_inputs(leftovers);
}

Node::Rare& Node::rare() const {
  if (!rare_) rare_ = std::make_unique<Rare>();
  return *rare_;
}

void Node::give_up_inputs(Leftovers& leftovers) {
  const auto give_up = [&](std::span<NodeRef> inputs) {
    for (NodeRef& input : inputs) {
      if (input) leftovers.push_back(std::move(input));
    }
  };
  give_up(inputs_);
  if (!rare_) return;
  give_up(rare_->inputs);
  rare_->inputs.clear();
}

std::mutex& graph_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::uint64_t next_node() { return next_sequence.load(std::memory_order_relaxed); }

std::size_t byte_size(const NodeInfo& node) {
  return static_cast<std::size_t>(numel(node.shape)) * size_of(node.dtype);
}

}  // namespace russet::graph
