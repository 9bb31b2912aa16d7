// What the simulated GPU reports while a test runs fails that test; and at the end, how many kernels there were. Their
// names go to the file that RUSSET_TEST_KERNEL_LIST names.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/runtime.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#ifdef RUSSET_HAS_SIMULATOR  // which the library does not have on every system
#include "device/gpu/simulator/machine.h"
#include "device/gpu/simulator/objects/metal.h"

namespace russet::conformance {
namespace {

class Reports : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { simulator::take_reports(); }
  void OnTestEnd(const testing::TestInfo&) override {
    try {
      synchronize();
    } catch (const Error& error) {
      ADD_FAILURE() << "work that nobody waited for failed: " << error.what();
    }
    for (const simulator::CheckReport& report : simulator::take_reports()) {
      ADD_FAILURE() << "the simulated GPU reports: " << report.check << ": " << report.kernel << ": " << report.message;
    }
  }
  void OnTestProgramEnd(const testing::UnitTest&) override {
    const objects::Statistics& statistics = objects::statistics();
    if (statistics.libraries == 0) return;
    const std::set<std::string> kernels = objects::distinct_kernels();
    fmt::print("{} distinct kernels, built in {} compilations; {} fallbacks to the cpu\n", kernels.size(),
               statistics.libraries.load(), counters().fallbacks);
    const char* const list = std::getenv("RUSSET_TEST_KERNEL_LIST");
    if (list == nullptr) return;
    std::filesystem::create_directories(std::filesystem::path(list).parent_path());
    std::ofstream file(list);
    for (const std::string& kernel : kernels) file << kernel << '\n';
  }
};

const bool listening = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Reports);
  return true;
}();

}  // namespace
}  // namespace russet::conformance
#endif
