// Sources compiled here and by helpers: what helpers give, and what goes on when they are missing or die. No GPU is
// needed.
#include "device/gpu/cuda/compilers.h"

#include <gtest/gtest.h>
#include <russet/error.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "files/temporary_folder.h"

namespace russet::cuda {
namespace {

namespace fs = std::filesystem;

constexpr int capability = 90;
constexpr std::size_t sources = 12;  // more than are compiled at once here, so that helpers have to do

std::string source_of_number(std::size_t number) {
  return source_of({"KERNEL(one, 32, OUT(float, y, 0)) { y[thread_id] = " + std::to_string(number) + ".0f; }", {}});
}

/// Machine code of all sources, compiled at once.
std::vector<std::string> codes_of(Compilers& compilers) {
  std::vector<std::string> codes(sources);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < sources; ++i) {
    threads.emplace_back([&, i] { codes[i] = compilers.compile(source_of_number(i)).code; });
  }
  for (std::thread& thread : threads) thread.join();
  return codes;
}

std::vector<std::string> codes_of_this_process() {
  std::vector<std::string> codes;
  for (std::size_t i = 0; i < sources; ++i) codes.push_back(compile(source_of_number(i), capability).code);
  return codes;
}

class CompileHelpers : public testing::Test {
 protected:
  void SetUp() override {
    try {
      compiler_name(capability);
    } catch (const DeviceError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

/// A program of these lines of sh.
class Script {
 public:
  explicit Script(const std::string& lines)
      : path_(fs::temp_directory_path() / ("russet_helper_" + std::to_string(::getpid()))) {
    std::ofstream(path_) << "#!/bin/sh\n" << lines << '\n';
    fs::permissions(path_, fs::perms::owner_all);
  }
  ~Script() { fs::remove(path_); }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST_F(CompileHelpers, GiveTheSameCode) {
  Compilers compilers(capability, helper_program(), 3);
  EXPECT_EQ(codes_of(compilers), codes_of_this_process());
  EXPECT_EQ(compilers.started_helpers(), 3U);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a helper is left behind";
}

TEST_F(CompileHelpers, AreNotStartedForOneSource) {
  Compilers compilers(capability, helper_program(), 3);
  EXPECT_EQ(compilers.compile(source_of_number(1)).code, compile(source_of_number(1), capability).code);
  EXPECT_EQ(compilers.started_helpers(), 0U);
}

TEST_F(CompileHelpers, ThatAreNotInstalledAreDoneWithout) {
  Compilers compilers(capability, "/no/such/program", 3);
  EXPECT_EQ(codes_of(compilers), codes_of_this_process());
  EXPECT_EQ(compilers.started_helpers(), 0U);
}

TEST_F(CompileHelpers, ThatEndAtOnceOrSayOtherThingsAreDoneWithout) {
  const std::vector<std::string> codes = codes_of_this_process();
  for (const char* lines : {"exit 0", "cat >&0", "sleep 0.2; kill -9 $$"}) {
    const Script script(lines);
    Compilers compilers(capability, script.path(), 3);
    EXPECT_EQ(codes_of(compilers), codes) << lines;
    const std::size_t started = compilers.started_helpers();
    EXPECT_GE(started, 1U) << lines;
    EXPECT_EQ(codes_of(compilers), codes) << lines;
    EXPECT_EQ(compilers.started_helpers(), started) << "one was started after others had failed: " << lines;
  }
}

TEST_F(CompileHelpers, PassOnTheCompilersWords) {
  Helper helper(helper_program());
  const std::string name = compiler_name(capability);
  try {
    helper.compile(source_of({"KERNEL(one, 32, OUT(float, y, 0)) { y[thread_id] = nothing; }", {}}), capability, name);
    FAIL() << "it was compiled";
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find("\"nothing\" is undefined"), std::string::npos) << error.what();
  }
  // It goes on afterwards.
  EXPECT_EQ(helper.compile(source_of_number(1), capability, name)->code, compile(source_of_number(1), capability).code);
}

/// A variable of the environment, while this lives.
class Environment {
 public:
  Environment(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Environment() { before_ ? setenv(name_.c_str(), before_->c_str(), 1) : unsetenv(name_.c_str()); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

TEST_F(CompileHelpers, LeaveNoFiles) {
  const std::string compiler = compiler_name(capability);
  if (compiler.find("--pch") == std::string::npos) GTEST_SKIP() << compiler << " does not precompile the prelude";
  const files::TemporaryFolder folder;
  const Environment temporary("TMPDIR", folder.path());
  {
    Helper helper(helper_program());
    ASSERT_TRUE(helper.compile(source_of_number(1), capability, compiler));
    EXPECT_FALSE(fs::is_empty(folder.path())) << "the precompiled prelude lies elsewhere: this test sees nothing";
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST_F(CompileHelpers, WithAnotherCompilerRefuse) {
  Helper helper(helper_program());
  EXPECT_FALSE(helper.compile(source_of_number(1), capability, "nvrtc of another version"));
}

}  // namespace
}  // namespace russet::cuda
