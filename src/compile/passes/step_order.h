#pragma once
// StepOrder: which steps have to wait for which, by the slots that they read and write.
#include <cstdint>
#include <vector>

#include "compile/program.h"

namespace russet::compile::passes {

class StepOrder {
 public:
  explicit StepOrder(const Program& program);

  /// Whether the later of two steps waits for the earlier one, itself or by way of others.
  bool waits(std::size_t later, std::size_t earlier) const { return waits_for_[later][earlier]; }

 private:
  void wait(std::size_t later, std::size_t earlier);

  std::vector<std::vector<bool>> waits_for_;  // by step: the steps before it
};

}  // namespace russet::compile::passes
