#pragma once
// Nothing, and PlansAlone: a kernel, and a device that has no other, for tests that look at plans.
#include <memory>
#include <string>

#include "compile/step.h"

namespace russet {

class Nothing final : public compile::Kernel {
 public:
  void run(const compile::Bindings&) const override {}
  std::string name() const override { return "nothing"; }
};

class PlansAlone : public compile::Target {
 public:
  std::unique_ptr<compile::Kernel> compile(const compile::Step&) const override { return std::make_unique<Nothing>(); }
};

}  // namespace russet
