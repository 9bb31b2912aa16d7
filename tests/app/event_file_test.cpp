// Event files of TensorBoard, held against what its own writer makes (scripts/golden/event_files.py).
#include <gtest/gtest.h>
#include <russet/error.h>
#include <russet/io/file.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "run/event_file.h"

namespace russet::app {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  const std::vector<std::byte> bytes = io::read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string record(double time, std::int64_t step, std::vector<Scalar> scalars) {
  return scalars_record(time, step, scalars);
}

/// The bytes of the events of the script, in its order.
std::string events() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double time = 1.7e9;
  const std::string long_tag(200, 'x');
  return version_record(time) + start_record(time + 0.25, 1) + start_record(0, 0) +
         record(time + 0.5, 1, {{"train/loss", 2.302585092994046}, {"train/learning_rate", 0.1}}) +
         record(time + 1.125, 0, {{"train/loss", 0.0}}) + record(0, 127, {{"a", -0.0}}) +
         record(time + 2, 128, {{"b", 1e-45}, {"\u03bb", 3.4e38}}) +
         record(time + 3, (std::int64_t{1} << 40) + 5, {{"test/accuracy", nan}, {"test/loss", -infinity}}) +
         record(time + 4, 300, {{long_tag, 16777217.0}});
}

/// Of a step whose loss is its number.
std::string step_record(std::int64_t step) {
  return record(1.7e9, step, {{"train/loss", static_cast<double>(step)}, {"train/learning_rate", 0.5}});
}
void add_step(EventFile& file, std::int64_t step) {
  file.add(StepRecord{step, static_cast<double>(step), 0.5, 0}, 1.7e9);
}

class EventFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("russet-events-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// In the order in which TensorBoard reads them.
  std::vector<fs::path> files() const {
    std::set<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.insert(entry.path());
    return {found.begin(), found.end()};
  }

  fs::path folder_;
};

TEST(EventRecords, AreTheBytesOfTensorBoardsWriter) {
  EXPECT_TRUE(events() == content(RUSSET_SOURCE_DIR "/tests/golden/data/event_file.tfevents"));
}

TEST_F(EventFileTest, EachIsNewAndComesAfterTheOthers) {
  for (const std::int64_t step : {1, 5, 9}) {
    EventFile file(folder_, step);
    add_step(file, step);
  }
  const std::vector<fs::path> found = files();
  ASSERT_EQ(found.size(), 3U);
  std::int64_t step = 1;
  for (const fs::path& path : found) {
    EXPECT_TRUE(path.filename().string().starts_with("events.out.tfevents.")) << path;
    const std::string text = content(path);
    EXPECT_TRUE(text.ends_with(step_record(step))) << path;
    EXPECT_EQ(text.size(), version_record(1).size() + start_record(1, step).size() + step_record(step).size());
    step += 4;
  }
}

TEST_F(EventFileTest, EpochsHoldWhatWasEvaluated) {
  EventFile file(folder_, 1);
  std::string expected = content(files()[0]);
  file.add(EpochRecord{1, 0.5, 0.75, 0.25}, 10, 1.7e9);
  file.add(EpochRecord{2, 0.5, {}, 0.125}, 20, 1.7e9 + 1);
  file.add(EpochRecord{3, 0.5, {}, {}}, 30, 1.7e9 + 2);
  file.flush();
  expected += record(1.7e9, 10, {{"test/loss", 0.25}, {"test/accuracy", 0.75}});
  expected += record(1.7e9 + 1, 20, {{"test/loss", 0.125}});
  EXPECT_TRUE(content(files()[0]) == expected);
}

TEST_F(EventFileTest, AFolderThatCannotBeMadeIsOneError) {
  std::ofstream(folder_) << "a file";
  try {
    EventFile(folder_ / "events", 1);
    FAIL() << "nothing was thrown";
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find(folder_.string()), std::string::npos) << error.what();
  }
}

/// A limit of the size of files stands for a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(EventFileTest, AFullDiskIsOneErrorAndLeavesWholeRecords) {
  EventFile file(folder_, 1);
  const std::string before = content(files()[0]);
  const std::string first = step_record(1);
  {
    const FullDisk disk(before.size() + first.size() + first.size() / 2);
    add_step(file, 1);
    file.flush();
    EXPECT_TRUE(content(files()[0]) == before + first);
    add_step(file, 2);
    try {
      file.flush();
      FAIL() << "nothing was thrown";
    } catch (const FileError& error) {
      EXPECT_NE(std::string(error.what()).find(files()[0].string()), std::string::npos) << error.what();
    }
    EXPECT_TRUE(content(files()[0]) == before + first);
  }
  file.flush();  // there is room again
  EXPECT_TRUE(content(files()[0]) == before + first + step_record(2));
}

}  // namespace
}  // namespace russet::app
