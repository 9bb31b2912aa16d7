// What every kernel that there is has in common; and their texts, written to a folder for the dialect's check.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "kernels/collect.h"

namespace russet::kernels {
namespace {

const std::vector<gpu::FunctionPtr>& functions() {
  static const std::vector<gpu::FunctionPtr> all =
      all_functions({Gpu::apple, Gpu::nvidia, Gpu::nvidia_without_libraries});
  return all;
}

TEST(Units, EachKernelStatesItsThreads) {
  const std::regex entry(R"(KERNEL\((\w+), *(\d+), )");
  for (const gpu::FunctionPtr& function : functions()) {
    const std::string& text = function->source().text;
    std::vector<std::smatch> found;
    for (std::sregex_iterator at(text.begin(), text.end(), entry), end; at != end; ++at) found.push_back(*at);
    ASSERT_EQ(found.size(), 1U) << text;
    EXPECT_EQ(found[0][1], function->name());
    EXPECT_EQ(found[0][2], std::to_string(function->source().threads)) << text;
    EXPECT_EQ(function->source().threads % 32, 0U);
    EXPECT_LE(function->source().threads, 1024U);
  }
}

TEST(Units, AreOfEverySource) {
  for (const auto& [source, count] : {std::pair("models", functions_of_models(Gpu::apple).size()),
                                      std::pair("primitives", functions_of_primitives(Gpu::apple).size()),
                                      std::pair("random groups", functions_of_random_groups(Gpu::apple).size())}) {
    fmt::print("{} kernels of {}\n", count, source);
    EXPECT_GT(count, 100U) << source;
  }
}

/// RUSSET_TEST_UNITS names the folder.
TEST(Units, AreWritten) {
  const char* const folder = std::getenv("RUSSET_TEST_UNITS");
  if (folder == nullptr) GTEST_SKIP() << "nobody asks for them";
  const std::vector<gpu::CompilationUnit> units = gpu::make_units(functions());
  for (std::size_t i = 0; i < units.size(); ++i) {
    std::ofstream(std::filesystem::path(folder) / fmt::format("unit{:03}.metal", i)) << units[i].text;
  }
  fmt::print("{} kernels in {} units\n", functions().size(), units.size());
}

}  // namespace
}  // namespace russet::kernels
