#pragma once
// Preparations: what evaluations compute of parameters alone (the pass hoist), kept from run to run with the values
// that it was made of, and freed with the first of them that goes.
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "compile/plan.h"
#include "graph/buffer.h"
#include "graph/node.h"

namespace russet::runtime {

/// Not locked; its owner is. What is kept may go in another thread, with its values.
class Preparations {
 public:
  using PlanPtr = std::shared_ptr<const compile::Plan>;
  /// What a preparation was made of: its leaves' values, and the run-time arguments that it reads.
  struct Sources {
    std::vector<const graph::Node*> values;
    std::vector<std::uint64_t> arguments;
    bool operator==(const Sources&) const = default;
  };
  /// The memory of its outputs, in order.
  using Results = std::vector<Ref<graph::Buffer>>;

  /// The same preparation, if another plan of this environment has it, so that the two share what is kept; else this
  /// one.
  PlanPtr shared(const PlanPtr& preparation, std::uint64_t environment);
  /// What is kept of these sources; empty if nothing is.
  Results find(const compile::Plan& preparation, const Sources& sources);
  /// Keeps results as long as all sources live, if each may have something kept with it, and until as many others were
  /// kept since.
  void keep(const PlanPtr& preparation, Sources sources, Results results);
  /// Lets go of all that is kept. Returns whether that was anything.
  bool clear();
  /// Bytes that are kept.
  std::size_t bytes() const;

 private:
  class Kept;
  class Tie;
  struct Entry {
    PlanPtr preparation;
    Sources sources;
    Ref<Kept> kept;
  };
  std::list<Entry> entries_;  // what was used last first
  struct Known {
    std::weak_ptr<const compile::Plan> preparation;
    std::uint64_t environment;
  };
  std::vector<Known> known_;
};

}  // namespace russet::runtime
