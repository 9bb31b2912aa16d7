#pragma once
// The page of a benchmark (bench.html).
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/measurement.h"

namespace russet::app {

struct BenchPage {
  enum class Picture : std::uint8_t { speedups, curves };
  std::string title;
  Picture picture = Picture::curves;
  /// What speed-ups are over.
  std::string baseline_device{};
  std::string baseline_precision{};
  std::vector<Measurement> measurements;
  /// Lines of the table at the end: devices, versions.
  std::vector<std::pair<std::string, std::string>> facts;
};

/// Speed-ups: a chart of each phase, a bar for each model, device and precision. Curves: for each model and phase the
/// seconds of a step and the samples a second by the size of the batch, a line for each device and precision. Below
/// them a table of all that was measured.
std::string to_html(const BenchPage& page);

}  // namespace russet::app
