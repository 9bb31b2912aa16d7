// Files that are kept between runs: bounded, whole or not there, whoever reads and writes meanwhile.
#include "base/disk_cache.h"

#include <gtest/gtest.h>
#include <russet/error.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace russet::base {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Disk : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }

  DiskCache cache(std::uint64_t most_bytes = 1 << 20) const { return {folder, most_bytes}; }
  void add(const std::string& name, std::size_t bytes, std::chrono::minutes age) const {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << std::string(bytes, 'x');
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() - age);
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) names.insert(fs::relative(entry.path(), folder).string());
    }
    return names;
  }

  const fs::path folder = fs::temp_directory_path() / ("russet-disk-cache-" + std::to_string(getpid()));
};

TEST_F(Disk, LosesWhatWasNotUsedForLongest) {
  add("new/prelude.pch", 1000, 30min);
  add("new/a.so", 1000, 50min);
  add("new/a.metal", 1000, 5000min);  // its object was used since
  add("new/b.so", 1000, 70min);
  add("new/b.metal", 1000, 70min);
  add("new/lock", 0, 9000min);
  add("old/prelude.pch", 1000, 100min);
  add("old/prelude/simulator.h", 1000, 100min);  // deeper files are not the cache's to remove
  add("c.metal.12.0", 1000, 90min);              // someone was killed while he wrote it
  const std::set<std::string> all = files();
  cache(8000).trim();
  EXPECT_EQ(files(), all);
  cache(6999).trim();  // 7000 bytes of 7 files, to become at most three quarters
  EXPECT_EQ(files(), (std::set<std::string>{"new/prelude.pch", "new/a.so", "new/a.metal", "new/b.so", "new/b.metal",
                                            "new/lock", "old/prelude/simulator.h"}));
  cache(4500).trim();
  EXPECT_EQ(files(), (std::set<std::string>{"new/prelude.pch", "new/a.so", "new/a.metal", "new/lock",
                                            "old/prelude/simulator.h"}));
}

TEST_F(Disk, KeepsWhatSomeoneMayBeAboutToLoad) {
  add("a.so", 1000, 9min);
  add("b.so", 1000, 11min);
  cache(0).trim();
  EXPECT_EQ(files(), std::set<std::string>{"a.so"});
  EXPECT_NO_THROW(DiskCache(folder / "nowhere", 0).trim());
}

TEST_F(Disk, WhatIsUsedCountsAsNew) {
  add("a", 1000, 60min);
  add("b", 1000, 50min);
  cache().touch("a");
  cache(1500).trim();
  EXPECT_EQ(files(), std::set<std::string>{"a"});
}

TEST_F(Disk, PuttingKeepsTheBound) {
  for (int i = 0; i < 20; ++i) add(std::to_string(i), 1000, 60min);
  cache(5000).put("first", "x");
  EXPECT_LE(files().size(), 4U);
  EXPECT_TRUE(cache().holds("first"));
}

TEST_F(Disk, AFileThatIsNotWrittenWholeIsNotThere) {
  EXPECT_EQ(cache().read("sub/a"), std::nullopt);
  cache().put("sub/a", "old");
  EXPECT_EQ(cache().read("sub/a"), "old");
  EXPECT_THROW(cache().put("sub/a",
                           [](const fs::path& fresh) {
                             std::ofstream(fresh) << "half";
                             throw DeviceError("the compiler was killed");
                           }),
               DeviceError);
  EXPECT_EQ(cache().read("sub/a"), "old");
  EXPECT_THROW(cache().put("b", [](const fs::path&) {}), FileError) << "nothing was written";
  add("file", 1, 0min);
  EXPECT_THROW(cache().put("file/a", "x"), FileError) << "its folder is a file";
  EXPECT_EQ(files(), (std::set<std::string>{"sub/a", "file"}));
}

TEST_F(Disk, WhatIsRefusedIsRemoved) {
  cache().put("a", "damaged");
  cache().refuse("a", "is damaged");
  EXPECT_FALSE(cache().holds("a"));
  cache().put("a", "longer than it may be");
  EXPECT_EQ(cache().read("a", 8), std::nullopt);
  EXPECT_FALSE(cache().holds("a"));
}

TEST_F(Disk, WithoutAFolderNothingIsKept) {
  const DiskCache none({}, 1000);
  none.put("russet-disk-cache-test", "x");
  EXPECT_FALSE(none.keeps());
  EXPECT_FALSE(none.holds("russet-disk-cache-test"));
  EXPECT_EQ(none.read("russet-disk-cache-test"), std::nullopt);
  EXPECT_FALSE(fs::exists("russet-disk-cache-test"));
}

TEST_F(Disk, ReadersSeeWholeFilesWhileOthersWrite) {
  const std::string contents[] = {std::string(100000, 'a'), std::string(70000, 'b')};
  cache().put("a", contents[0]);
  std::atomic<bool> done{false};
  std::vector<std::thread> writers;
  for (const std::string& content : contents) {
    writers.emplace_back([&] {
      while (!done) cache().put("a", content);
    });
  }
  for (int i = 0; i < 500; ++i) {
    const auto content = cache().read("a");
    ASSERT_TRUE(content == contents[0] || content == contents[1]);
  }
  done = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(files(), std::set<std::string>{"a"});
}

}  // namespace
}  // namespace russet::base
