#pragma once
// A program that includes this leaves out the pass that RUSSET_TEST_WITHOUT_PASS names: see project/pass_mutants.py.
#include <cstdlib>

#include "compile/plan.h"

namespace russet {

/// tests/project/pass_mutants.py leaves out one pass after the other and expects a test here to fail.
[[maybe_unused]] inline const bool mutated = [] {
  if (const char* pass = std::getenv("RUSSET_TEST_WITHOUT_PASS")) compile::disable_pass(pass);
  return true;
}();

}  // namespace russet
