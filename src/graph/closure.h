#pragma once
// Closure: what a flush computes, in record order, what it may overwrite, and what becomes of it.
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "graph/executor.h"
#include "graph/node.h"
#include "graph/node_order.h"

namespace russet::graph {

/// Calls its argument with values, which stay what they are meanwhile.
using ForEachValue = base::FunctionRef<void(base::FunctionRef<void(Node&)>)>;

[[noreturn]] void throw_device_mismatch(ops::Op op, std::span<const NodeRef> inputs);

/// The scratch of one thread's flushes, used again from flush to flush, so that a flush allocates nothing.
class Closure {
 public:
  /// How many of the outputs that are left are taken at once.
  enum class Take : std::uint8_t { all_of_a_device, one };

  /// The work of the first output's device, whose outputs leave the list; empty if nothing is left to compute. What
  /// another thread is computing is waited for; what depends on a value that failed fails. Other threads wait for the
  /// outputs until settle(), and until then the work holds. `restorable` calls its argument with the values that
  /// cells of the thread keep for the case of a failure alone; `recorded` is how many nodes were recorded since the
  /// last flush, about.
  const Work& take(std::vector<NodeRef>& outputs, const ForEachValue& restorable, std::size_t recorded, Take amount);
  /// Publishes what was computed. Outputs that were not, though nothing that they depend on failed, go back to
  /// `outputs`.
  void settle(Outcome& outcome, std::vector<NodeRef>& outputs);
  /// Why outputs failed, each reason once, until this is cleared.
  std::vector<std::exception_ptr>& failures() { return failures_; }

 private:
  struct Visited {
    Node* node;
    std::int32_t first_input = 0;  // in inputs_
    std::uint32_t inputs = 0;
    std::int32_t position = -1;  // among the work's nodes
    std::uint32_t uses = 0;      // by nodes of this closure, and by what holds them for it
    bool leaf = false;
    bool output = false;
    bool survives = false;  // somebody else holds it, or needs it for something that somebody holds
  };

  void choose_outputs(std::vector<NodeRef>& outputs, Take amount);
  void drop_settled_outputs();
  std::int32_t meet(Node* node);
  bool visit(std::size_t recorded);
  void fail_dependants();
  void find_survivors(const ForEachValue& restorable);
  void hold_survivors();
  void set_computing(bool computing);
  void write_work();
  WorkNode& add_node(std::int32_t number);
  void write_leaf(std::int32_t number);
  void write_node(std::int32_t number);
  std::span<const std::int32_t> inputs_of(std::int32_t number) const {
    const Visited& visited = visited_[static_cast<std::size_t>(number)];
    return std::span(inputs_).subspan(static_cast<std::size_t>(visited.first_input), visited.inputs);
  }
  void note_failure(const std::exception_ptr& failure);
  void let_go();

  std::vector<NodeRef> outputs_;
  std::vector<NodeRef> held_;  // what another thread could let go of meanwhile
  NodeOrder nodes_;
  std::vector<Visited> visited_;  // by number
  bool learns_ = false;
  std::vector<std::int32_t> inputs_;    // numbers, node after node; -1 for one that a node lacks
  std::vector<std::int32_t> recorded_;  // numbers in record order
  std::vector<std::int32_t> order_;     // numbers in the order of the work's nodes
  std::vector<std::int32_t> survivors_;
  Leftovers leftovers_;
  std::vector<std::exception_ptr> failures_;
  Work work_;
};

/// Publishes what became of a work that was captured: `nodes` has those of its leaves and outputs, by position. An
/// output that was not computed fails.
void publish(const Work& work, std::span<const NodeRef> nodes, Outcome& outcome);

}  // namespace russet::graph
