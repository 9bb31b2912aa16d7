// RUSSET_SIMULATOR's words, which are read once: this program runs under two of them.
#include <cstdlib>

#include "launcher.h"

namespace russet::simulator {
namespace {

const int set = setenv("RUSSET_SIMULATOR", "small_groups,flush_subnormals", 1);

TEST(Options, SmallGroupsAreThoseOf256) {
  ASSERT_EQ(set, 0);
  const Compiled wide("KERNEL(wide, 512, OUT(float, y, 0)) { y[thread_id] = 1; }", "wide", true);
  std::vector<float> y(512);
  const std::vector<std::string> lines = reports_of(wide.dispatch(1, 512, {out(y)}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], "launch: threadgroups of 512 threads: the device takes 256 at most");
  EXPECT_EQ(reports_of(wide.dispatch(1, 256, {out(y)})), std::vector<std::string>{});
}

TEST(Options, SubnormalsAreFlushedOnTheDeviceAlone) {
  const Compiled twice("KERNEL(twice, 32, IN(float, x, 0), OUT(float, y, 1)) { y[thread_id] = x[thread_id] * 2.0f; }",
                       "twice", true);
  const std::vector<float> x(32, 1e-40f);
  std::vector<float> y(32, 1);
  EXPECT_EQ(reports_of(twice.dispatch(1, 32, {in(x), out(y)})), std::vector<std::string>{});
  EXPECT_EQ(y[0], 0);
  volatile float host = 1e-40f;
  EXPECT_GT(host * 2, 0);
}

}  // namespace
}  // namespace russet::simulator
