// Operators work as long as the program runs: in handlers of its exit, and where static objects are destroyed.
#include <gtest/gtest.h>
#include <russet/russet.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

namespace russet {
namespace {

void compute(const char* where) {
  const Tensor x = ones({1000}) * 2;
  x.add_(1);
  std::fprintf(stderr, "%s: %g. ", where, sum(x).item<double>());
}

/// Made before, and so destroyed after, whatever russet makes when it is first used.
struct Last {
  bool armed = false;
  Tensor kept;
  ~Last() {
    if (armed) compute("last");
    if (kept.defined()) std::fprintf(stderr, "kept: %g. ", (kept + 1).item<double>());
  }
};
Last last;

class Exit : public testing::Test {
 protected:
  void SetUp() override {
#ifdef RUSSET_EMULATED
    GTEST_SKIP() << "a death test starts its program again, which the kernel cannot run without qemu";
#endif
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(Exit, OperatorsWorkInHandlers) {
  const auto leave = [] {
    compute("before");
    std::atexit([] { compute("handler"); });
    std::exit(0);
  };
  EXPECT_EXIT(leave(), testing::ExitedWithCode(0), "before: 3000. handler: 3000. ");
}

TEST_F(Exit, OperatorsWorkInDestructors) {
  const auto leave = [](bool used_before) {
    if (used_before) compute("before");
    last.armed = true;
    std::exit(0);
  };
  EXPECT_EXIT(leave(true), testing::ExitedWithCode(0), "before: 3000. last: 3000. ");
  EXPECT_EXIT(leave(false), testing::ExitedWithCode(0), "last: 3000. ");
}

TEST_F(Exit, WhatIsPendingCanBeRead) {
  const auto leave = [] {
    last.kept = sum(ones({10}));
    std::exit(0);
  };
  EXPECT_EXIT(leave(), testing::ExitedWithCode(0), "kept: 11. ");
}

}  // namespace
}  // namespace russet
