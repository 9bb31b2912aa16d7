#pragma once
// The log of a run: JSON lines, appended, and cut back when a run resumes.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "run/append_file.h"

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

/// A number that JSON lacks (NaN, infinity) is written as null. Opening, flush and sync are AppendFile's.
class Log {
 public:
  Log(const std::filesystem::path& path, std::uint64_t bytes) : file_(path, bytes) {}

  void add(const StepRecord& record);
  void add(const EpochRecord& record);
  void flush() { file_.flush(); }
  std::uint64_t sync() { return file_.sync(); }

 private:
  AppendFile file_;
};

struct History {
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
};
/// What a log holds; nulls become NaN. Throws FileError for a line that is no record.
History read_log(const std::filesystem::path& path);

}  // namespace russet::app
