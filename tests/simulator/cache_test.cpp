// The cache of compiled kernels stays within its bound, whoever uses it meanwhile.
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
#include "launcher.h"

namespace russet::simulator {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

const fs::path folder = fs::temp_directory_path() / ("russet-cache-test-" + std::to_string(getpid()));
const int set = setenv("RUSSET_CACHE", folder.c_str(), 1);

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(cache_folder());
  }
  void TearDown() override { fs::remove_all(folder); }

  static void add(const std::string& name, std::size_t bytes, std::chrono::minutes age) {
    const fs::path path = cache_folder() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'x');
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }
  static std::set<std::string> files() {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(cache_folder())) {
      if (entry.is_regular_file()) names.insert(fs::relative(entry.path(), cache_folder()).string());
    }
    return names;
  }
};

TEST_F(Cache, LiesWhereTheVariableSays) {
  ASSERT_EQ(set, 0);
  EXPECT_EQ(cache_folder(), folder / "simulator");
  EXPECT_EQ(cache_limit, std::uint64_t{1} << 30);
}

TEST_F(Cache, LosesWhatWasNotUsedForLongest) {
  add("new/prelude.pch", 1000, 30min);
  add("new/a.so", 1000, 50min);
  add("new/a.metal", 1000, 5000min);  // its object was used since
  add("new/b.so", 1000, 70min);
  add("new/b.metal", 1000, 70min);
  add("new/lock", 0, 9000min);
  add("old/prelude.pch", 1000, 100min);
  add("old/prelude/simulator.h", 1000, 100min);
  add("old/c.metal.12.0", 1000, 90min);  // someone was killed while he wrote it
  const std::set<std::string> all = files();
  trim(cache_folder(), 8000);
  EXPECT_EQ(files(), all);
  trim(cache_folder(), 6999);  // 7000 bytes of 7 files, to become at most three quarters
  EXPECT_EQ(files(), (std::set<std::string>{"new/prelude.pch", "new/a.so", "new/a.metal", "new/b.so", "new/b.metal",
                                            "new/lock", "old/prelude/simulator.h"}));
  trim(cache_folder(), 4500);
  EXPECT_EQ(files(), (std::set<std::string>{"new/prelude.pch", "new/a.so", "new/a.metal", "new/lock",
                                            "old/prelude/simulator.h"}));
}

TEST_F(Cache, KeepsWhatSomeoneMayBeAboutToLoad) {
  add("new/a.so", 1000, 9min);
  add("new/b.so", 1000, 11min);
  trim(cache_folder(), 0);
  EXPECT_EQ(files(), std::set<std::string>{"new/a.so"});
  EXPECT_NO_THROW(trim(folder / "nowhere", 0));
}

std::string kernel(int number) {
  const std::string name = "k" + std::to_string(number);
  return "KERNEL(" + name + ", 32, OUT(float, y, 0)) { y[thread_id] = " + std::to_string(number) + "; }";
}

/// Threads that trim the cache to nothing, over and over.
class Trimmers {
 public:
  Trimmers() {
    for (std::thread& thread : threads_) {
      thread = std::thread([&] {
        while (!done_) trim(cache_folder(), 0);
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
    const int number = i % 3;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const bool kernel = entry.path().extension() == ".so" || entry.path().extension() == ".metal";
      std::error_code gone;
      if (kernel) fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - 5h, gone);
    }
    const Compiled compiled(kernel(number), "k" + std::to_string(number), false);
    std::vector<float> y(32, -1);
    EXPECT_EQ(reports_of(compiled.dispatch(1, 32, {out(y)})), std::vector<std::string>{});
    EXPECT_EQ(y, std::vector<float>(32, static_cast<float>(number)));
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

}  // namespace
}  // namespace russet::simulator
