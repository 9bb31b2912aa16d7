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

TEST(Exit, OperatorsWorkInHandlers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leave = [] {
    compute("before");
    std::atexit([] { compute("handler"); });
    std::exit(0);
  };
  EXPECT_EXIT(leave(), testing::ExitedWithCode(0), "before: 3000. handler: 3000. ");
}

TEST(Exit, OperatorsWorkInDestructors) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leave = [](bool used_before) {
    if (used_before) compute("before");
    last.armed = true;
    std::exit(0);
  };
  EXPECT_EXIT(leave(true), testing::ExitedWithCode(0), "before: 3000. last: 3000. ");
  EXPECT_EXIT(leave(false), testing::ExitedWithCode(0), "last: 3000. ");
}

TEST(Exit, WhatIsPendingCanBeRead) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leave = [] {
    last.kept = sum(ones({10}));
    std::exit(0);
  };
  EXPECT_EXIT(leave(), testing::ExitedWithCode(0), "kept: 11. ");
}

}  // namespace
}  // namespace russet
