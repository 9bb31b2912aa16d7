// The tile interpreter against a naive evaluator: random groups, and what must hold for each.
#include <gtest/gtest.h>

#include "base/parallel.h"
#include "group_fuzzer.h"

namespace russet::test {
namespace {

class Threads {
 public:
  explicit Threads(int count) : before_(base::thread_count()) { base::set_thread_count(count); }
  ~Threads() { base::set_thread_count(before_); }

 private:
  int before_;
};

class GroupFuzz : public testing::TestWithParam<unsigned> {};

TEST_P(GroupFuzz, EqualsReference) {
  const Limit limit(instruction_sets[GetParam() % 3]);
  for (unsigned seed = GetParam() * 1000; seed < GetParam() * 1000 + 200; ++seed) {
    Builder b = Fuzzer(seed).make();
    Memory wanted = b.memory;
    run_reference(b.group, wanted, b.arguments);
    for (const int threads : {1, 3}) {
      const Threads guard(threads);
      Memory got = b.memory;
      run_kernel(b.group, got, b.arguments);
      expect_equal(b, got, wanted, seed);
    }
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, GroupFuzz, testing::Range(0U, 18U));

}  // namespace
}  // namespace russet::test
