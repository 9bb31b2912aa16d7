#pragma once
// Closure: what a flush computes, in record order, what it may overwrite, and what becomes of it.
#include <span>
#include <vector>

#include "graph/executor.h"
#include "graph/node.h"
#include "graph/node_order.h"

namespace russet::graph {

[[noreturn]] void throw_device_mismatch(ops::Op op, std::span<const NodeRef> inputs);

/// The scratch of one thread's flushes, used again from flush to flush, so that a flush allocates nothing.
class Closure {
 public:
  /// How many of the outputs that are left are taken at once.
  enum class Take : std::uint8_t { all_of_a_device, one };

  /// The work of the first output's device, whose outputs leave the list; empty if nothing is left to compute. What
  /// another thread is computing is waited for; what depends on a value that failed fails. Other threads wait for the
  /// outputs until settle(), and until then the work holds. `restorable` are values that cells, and this list, keep
  /// for the case of a failure alone; `recorded` is how many nodes were recorded since the last flush, about.
  const Work& take(std::vector<NodeRef>& outputs, std::span<const NodeRef> restorable, std::size_t recorded,
                   Take amount);
  /// Publishes what was computed. Outputs that were not, though nothing that they depend on failed, go back to
  /// `outputs`.
  void settle(Outcome& outcome, std::vector<NodeRef>& outputs);
  /// Why outputs failed, each reason once, until this is cleared.
  std::vector<std::exception_ptr>& failures() { return failures_; }

 private:
  /// A cast that is kept with the leaf that it was made of.
  struct Hoisted {
    NodeRef leaf;
    NodeRef cast;
  };
  struct Visited {
    Node* node;
    std::int32_t first_input = 0;  // in inputs_
    std::uint32_t uses = 0;        // by nodes of this closure, and by what holds them for it
    bool leaf = false;
    bool output = false;
    bool survives = false;  // somebody else holds it, or needs it for something that somebody holds
  };

  void choose_outputs(std::vector<NodeRef>& outputs, Take amount);
  void drop_settled_outputs();
  std::int32_t meet(Node* node);
  bool visit(std::size_t recorded);
  void fail_dependants();
  void note_hoisted();
  void find_survivors(std::span<const NodeRef> restorable);
  void hold_survivors();
  void set_computing(bool computing);
  void write_work();
  std::span<const std::int32_t> inputs_of(std::int32_t number) const;
  static void keep(const Hoisted& hoisted);
  void note_failure(const std::exception_ptr& failure);
  void let_go();

  std::vector<NodeRef> outputs_;
  std::vector<Hoisted> hoisted_;
  std::vector<NodeRef> held_;  // what another thread could let go of meanwhile
  NodeOrder nodes_;
  std::vector<Visited> visited_;         // by number
  std::vector<std::int32_t> inputs_;     // numbers, node after node; -1 for one that a node lacks
  std::vector<std::int32_t> order_;      // numbers in record order
  std::vector<std::int32_t> positions_;  // in the work's entries, by number
  std::vector<std::int32_t> survivors_;
  Leftovers leftovers_;
  std::vector<std::exception_ptr> failures_;
  Work work_;
};

}  // namespace russet::graph
