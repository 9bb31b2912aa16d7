// The cache of compiled kernels stays within its bound and serves, whoever uses or damages it meanwhile.
#include <gtest/gtest.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "device/gpu/simulator/cache.h"
#include "device/gpu/simulator/process.h"
#include "launcher.h"

namespace russet::simulator {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A process that a test starts is told which folder its own is.
constexpr const char* told = "RUSSET_CACHE_TEST";
const fs::path folder = std::getenv(told) != nullptr
                            ? fs::path(std::getenv(told))
                            : fs::temp_directory_path() / ("russet-cache-test-" + std::to_string(getpid()));
const int set = setenv("RUSSET_CACHE", folder.c_str(), 1);

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(cache_folder());
  }
  void TearDown() override { fs::remove_all(folder); }
};

TEST_F(Cache, LiesWhereTheVariableSays) {
  ASSERT_EQ(set, 0);
  EXPECT_EQ(cache_folder(), folder / "simulator");
  EXPECT_EQ(cache_limit, std::uint64_t{1} << 30);
}

std::string kernel(int number) {
  const std::string name = "k" + std::to_string(number);
  return "KERNEL(" + name + ", 32, OUT(float, y, 0)) { y[thread_id] = " + std::to_string(number) + "; }";
}

void compile_and_run(int number) {
  const Compiled compiled(kernel(number), "k" + std::to_string(number), false);
  std::vector<float> y(32, -1);
  EXPECT_EQ(reports_of(compiled.dispatch(1, 32, {out(y)})), std::vector<std::string>{});
  EXPECT_EQ(y, std::vector<float>(32, static_cast<float>(number)));
}

/// Threads that trim the cache to nothing, over and over.
class Trimmers {
 public:
  Trimmers() {
    for (std::thread& thread : threads_) {
      thread = std::thread([&] {
        while (!done_) cache(0).trim();
      });
    }
  }
  ~Trimmers() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread threads_[2];
};

TEST_F(Cache, ServesWhileItIsTrimmed) {
  const Trimmers trimmers;
  for (int i = 0; i < 6; ++i) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const bool kernel = entry.path().extension() == ".so" || entry.path().extension() == ".metal";
      std::error_code gone;
      if (kernel) fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - 5h, gone);
    }
    compile_and_run(i % 3);
  }
}

TEST_F(Cache, MarksWhatItServesAsUsed) {
  const auto age_of_objects = [] {
    auto newest = fs::file_time_type::min();
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".so") newest = std::max(newest, entry.last_write_time());
    }
    return fs::file_time_type::clock::now() - newest;
  };
  { const Compiled first(kernel(7), "k7", false); }
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".so") fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - 3h);
  }
  EXPECT_GT(age_of_objects(), 2h);
  { const Compiled again(kernel(7), "k7", false); }
  EXPECT_LT(age_of_objects(), 1h);
}

std::string read_file(const fs::path& path) { return cache().read(path).value_or(""); }

/// As somebody writes who knows nothing of caches.
void write_file(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::vector<fs::path> preludes() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == "prelude.pch") found.push_back(entry.path());
  }
  return found;
}

TEST_F(Cache, DoesNotKnowByWhichPathItWasReached) {
  const fs::path link = folder.string() + "-link";
  fs::create_directory_symlink(folder, link);
  setenv("RUSSET_CACHE", link.c_str(), 1);
  compile_and_run(11);
  setenv("RUSSET_CACHE", folder.c_str(), 1);
  fs::remove(link);
  ASSERT_EQ(preludes().size(), 1);
  EXPECT_EQ(read_file(preludes()[0]).find(link.string()), std::string::npos);
  compile_and_run(12);
  EXPECT_EQ(preludes().size(), 1);
}

TEST_F(Cache, MakesAPreludeAnewThatClangRefuses) {
  compile_and_run(21);
  ASSERT_EQ(preludes().size(), 1);
  const fs::path prelude = preludes()[0];
  const std::string whole = read_file(prelude);
  write_file(prelude, "damaged");
  compile_and_run(22);
  EXPECT_EQ(read_file(prelude).size(), whole.size());
  write_file(prelude, whole.substr(0, whole.size() / 2));
  compile_and_run(23);
  // A header that is not the one it was made of.
  const fs::path header = prelude.parent_path() / "prelude/simulator.h";
  write_file(header, read_file(header) + "\n");
  compile_and_run(24);
  fs::remove_all(prelude.parent_path() / "prelude");
  compile_and_run(25);
  const fs::path options = prelude.parent_path() / "prelude.options";
  write_file(options, "-mllvm -an-option-of-no-version\n");
  compile_and_run(26);
  fs::remove(options);
  compile_and_run(27);
}

// clang's versions know other options of LLVM's.
TEST_F(Cache, DoesWithoutOptionsOfSpeedThatClangDoesNotKnow) {
  const fs::path older = folder / "older-clang";
  write_file(older, "#!/bin/sh\ncase \"$*\" in *-disable-lsr*) exit 1 ;; esac\nexec clang++ \"$@\"\n");
  fs::permissions(older, fs::perms::owner_all);
  setenv("RUSSET_SIMULATOR_CLANG", older.c_str(), 1);
  { const Compiled compiled(kernel(28), "k28", true); }
  unsetenv("RUSSET_SIMULATOR_CLANG");
  const std::string options = read_file(preludes().at(0).parent_path() / "prelude.options");
  EXPECT_NE(options.find("-disable-cgp"), std::string::npos);
  EXPECT_EQ(options.find("-disable-lsr"), std::string::npos);
}

/// What two test runs do that begin at once. Asked for by the test below alone.
TEST(Child, DISABLED_CompilesAndRuns) {
  for (int number = 31; number < 37; ++number) compile_and_run(number);
}

/// Runs several processes on the cache as it is.
void run_children() {
  std::vector<std::thread> children;
  for (int i = 0; i < 3; ++i) {
    children.emplace_back([] {
      const std::string words[] = {"/usr/bin/env", told + ("=" + folder.string()),
                                   fs::read_symlink("/proc/self/exe").string(), "--gtest_also_run_disabled_tests",
                                   "--gtest_filter=Child.*"};
      const Finished finished = run_program(words);
      EXPECT_EQ(finished.status, 0) << finished.output;
    });
  }
  for (std::thread& child : children) child.join();
}

TEST_F(Cache, ServesProcessesThatBeginAtOnce) {
  run_children();
  ASSERT_EQ(preludes().size(), 1);
  for (const auto& entry : fs::directory_iterator(preludes()[0].parent_path())) {
    const std::string kind = entry.path().extension().string();
    EXPECT_TRUE(std::set<std::string>({".so", ".metal", ".pch", ".options", ""}).contains(kind))
        << "left over: " << entry.path();
  }
}

TEST_F(Cache, ServesProcessesThatMeetADamagedPreludeAtOnce) {
  compile_and_run(31);
  write_file(preludes()[0], "damaged");
  for (const auto& entry : fs::directory_iterator(preludes()[0].parent_path())) {
    if (entry.path().extension() == ".metal") fs::remove(entry.path());
  }
  run_children();
}

}  // namespace
}  // namespace russet::simulator
