#pragma once
// The log of a run: JSON lines, appended, and cut back when a run resumes.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace russet::app {

struct StepRecord {
  std::int64_t step = 0;  // from 1
  double loss = 0;
  double lr = 0;
  double ms = 0;
};

struct EpochRecord {
  std::int64_t epoch = 0;  // from 1
  double loss = 0;         // the mean over the epoch's training samples
  std::optional<double> accuracy{};
  std::optional<double> test_loss{};
};

/// A number that JSON lacks (NaN, infinity) is written as null.
class Log {
 public:
  /// Opens or makes the file; what it holds beyond `bytes` is cut off. Throws FileError, also if it holds less.
  Log(const std::filesystem::path& path, std::uint64_t bytes);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void add(const StepRecord& record);
  void add(const EpochRecord& record);
  /// Hands all lines to the system. Throws FileError.
  void flush();
  /// flush, and forces them to the disk. Returns the length of the file.
  std::uint64_t sync();

 private:
  std::string name_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
  std::string pending_;
};

struct History {
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
};
/// What a log holds; nulls become NaN. Throws FileError for a line that is no record.
History read_log(const std::filesystem::path& path);

}  // namespace russet::app
