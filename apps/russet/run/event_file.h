#pragma once
// Event files of TensorBoard: scalars by step. A file is a row of TFRecords (a length and the bytes of a message, each
// with its masked CRC-32C), a message an Event of TensorFlow's event.proto.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "run/append_file.h"
#include "run/log.h"

namespace russet::app {

struct Scalar {
  std::string_view tag;  // what stands before a slash groups tags
  double value = 0;      // kept as float32
};

/// Records, times being seconds since 1970. The first one of a file:
std::string version_record(double time);
/// A run starts, or goes on, with `step`: what earlier files hold of it and later steps is dropped.
std::string start_record(double time, std::int64_t step);
std::string scalars_record(double time, std::int64_t step, std::span<const Scalar> scalars);

/// A new file in a folder. A process that is killed leaves whole records, but for one that the system was writing:
/// readers stop in front of it.
class EventFile {
 public:
  /// Makes the folder if there is none. `step`: the first one that will be added. Throws FileError.
  EventFile(const std::filesystem::path& folder, std::int64_t step);

  /// Loss and learning rate: train/loss, train/learning_rate.
  void add(const StepRecord& record, double time);
  /// What there is of test/loss and test/accuracy; `step`: the last one of the epoch.
  void add(const EpochRecord& record, std::int64_t step, double time);
  /// Throws FileError.
  void flush() { file_.flush(); }

 private:
  AppendFile file_;
};

}  // namespace russet::app
