#pragma once
// Nothing: a kernel for targets that are asked for plans alone.
#include <string>

#include "compile/step.h"

namespace russet {

class Nothing final : public compile::Kernel {
 public:
  void run(const compile::Bindings&) const override {}
  std::string name() const override { return "nothing"; }
};

}  // namespace russet
