// Kernel texts are embedded as they stand in the source folder.
#include <gtest/gtest.h>
#include <russet/error.h>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "device/gpu/kernels.h"

namespace russet::gpu {
namespace {

TEST(KernelTexts, AreThoseOfTheFolder) {
  const std::filesystem::path folder = RUSSET_SOURCE_DIR "/src/device/gpu/kernels";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const std::string name = std::filesystem::relative(entry.path(), folder).generic_string();
    EXPECT_EQ(kernel_text(name), text) << name;
  }
  EXPECT_EQ(kernel_files().size(), files);
}

TEST(KernelTexts, AnUnknownNameIsAnError) { EXPECT_THROW(kernel_text("no_such.metal"), InternalError); }

}  // namespace
}  // namespace russet::gpu
