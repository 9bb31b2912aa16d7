// Machine code from NVRTC and from files, damaged ones included, and libraries that are not there. No GPU is needed.
#include "device/gpu/cuda/cubins.h"

#include <gtest/gtest.h>
#include <russet/error.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "device/gpu/cuda/library.h"
#include "device/gpu/cuda/nvrtc.h"

namespace russet::cuda {
namespace {

namespace fs = std::filesystem;

constexpr int capability = 90;

gpu::CompilationUnit unit_of(std::string_view body) {
  return {"KERNEL(one, 32, OUT(float, y, 0)) { " + std::string(body) + " }", {{"one", 32}}};
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class CubinFiles : public testing::Test {
 protected:
  CubinFiles() : folder_(fs::temp_directory_path() / ("russet_cubins_" + std::to_string(::getpid()))) {}
  ~CubinFiles() override { fs::remove_all(folder_); }
  void SetUp() override {
    try {
      compilers_ = std::make_unique<Compilers>(capability);
    } catch (const DeviceError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  /// The only file.
  fs::path file() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".cubin") files.push_back(entry.path());
    }
    EXPECT_EQ(files.size(), 1U);
    return files.at(0);
  }

  fs::path folder_;
  std::unique_ptr<Compilers> compilers_;
};

TEST_F(CubinFiles, AreReadInsteadOfCompiling) {
  const Cubins cubins(folder_, *compilers_);
  const std::string code = cubins.of(unit_of("y[thread_id] = 1.0f;"));
  EXPECT_TRUE(
      code.starts_with("\x7f"
                       "ELF"));
  // Sealed content of another kind shows where the answer comes from.
  const fs::path path = file();
  const Cubins others(folder_ / "other", *compilers_);
  const std::string other = others.of(unit_of("y[thread_id] = 2.0f;"));
  ASSERT_NE(other, code);
  fs::copy_file(fs::directory_iterator(folder_ / "other")->path(), path, fs::copy_options::overwrite_existing);
  EXPECT_EQ(cubins.of(unit_of("y[thread_id] = 1.0f;")), other);
}

TEST_F(CubinFiles, AreMadeAnewIfDamaged) {
  const Cubins cubins(folder_, *compilers_);
  const gpu::CompilationUnit unit = unit_of("y[thread_id] = 1.0f;");
  const std::string code = cubins.of(unit);
  const fs::path path = file();
  const std::string whole = content_of(path);
  std::string turned = whole;
  turned[whole.size() / 2] ^= 1;
  for (const std::string& damaged : {std::string(), whole.substr(0, 10), whole.substr(0, whole.size() - 1), turned}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_EQ(cubins.of(unit), code);
    EXPECT_EQ(content_of(file()), whole);
  }
}

TEST_F(CubinFiles, AreNotKeptWithoutAFolder) {
  const Cubins cubins({}, *compilers_);
  EXPECT_FALSE(cubins.of(unit_of("y[thread_id] = 1.0f;")).empty());
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(CubinFiles, AWrongKernelIsAnErrorWithTheCompilersWords) {
  try {
    Cubins(folder_, *compilers_).of(unit_of("y[thread_id] = nothing;"));
    FAIL() << "it was compiled";
  } catch (const DeviceError& error) {
    const std::string words = error.what();
    EXPECT_NE(words.find("cuda: NVRTC refuses the kernels one: "), std::string::npos) << words;
    EXPECT_NE(words.find("\"nothing\" is undefined"), std::string::npos) << words;
  }
}

TEST(CudaLibrary, ThatIsMissingOrTooOldSaysSo) {
  const auto error_of = [](std::span<const char* const> names) {
    int (*function)() = nullptr;
    try {
      Library(names).load(function, "no_such_function");
    } catch (const DeviceError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const char* const missing[] = {"libno_such_library.so.7", "libno_such_library.so"};
  EXPECT_TRUE(error_of(missing).starts_with("libno_such_library.so.7 was not found: ")) << error_of(missing);
  const char* const old[] = {"libno_such_library.so.7", "libc.so.6"};
  EXPECT_EQ(error_of(old), "libc.so.6 has no no_such_function: it is too old");
}

}  // namespace
}  // namespace russet::cuda
