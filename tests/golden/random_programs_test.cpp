// Random programs of views, in-place writes, grad mode and backward passes: values, aliasing, strides, versions, .grad
// and errors are PyTorch's.
#include <gtest/gtest.h>

#include "calls/golden.h"
#include "golden/program.h"

namespace golden {
namespace {

class RandomPrograms : public testing::TestWithParam<const char*> {};

TEST_P(RandomPrograms, DoWhatPyTorchDoes) {
  const std::vector<std::string> lines = read_lines("random_programs.txt.gz");
  int programs = 0;
  int failures = 0;
  for (std::size_t i = 0; i < lines.size() && failures < 20;) {
    const std::uint64_t seed = std::stoull(lines[i++].substr(2));
    Program program(seed, russet::Device(GetParam()));
    ++programs;
    std::string history;
    bool failed = false;
    for (; i < lines.size() && !lines[i].starts_with("P "); ++i) {
      history += lines[i] + "\n";
      if (failed) continue;
      const std::string different = program.run(parse_step(lines[i]));
      if (different.empty()) continue;
      failed = true;
      ++failures;
      ADD_FAILURE() << "program " << seed << ": " << different << "\n" << history;
    }
  }
  EXPECT_GE(programs, failures < 20 ? 3500 : 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomPrograms, testing::Values("cpu", "reference"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace golden
