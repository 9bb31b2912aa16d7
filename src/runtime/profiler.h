#pragma once
// Profiler: what each step of each replay took; a chrome trace (the Trace Event Format of chrome://tracing) and sums.
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compile/plan.h"
#include "runtime/device.h"

namespace russet::runtime {

struct StepTiming {
  std::string name;
  std::string detail;
  double start_us = 0;
  double duration_us = 0;
  std::size_t bytes = 0;
  double operations = 0;
};

class Profiler {
 public:
  /// The profiler that runs report to, or nullptr.
  static std::shared_ptr<Profiler> active();
  static void activate(std::shared_ptr<Profiler> profiler);

  /// Runs a step and waits for it. Its time is the device's own where the device knows it, else the host's.
  void step(const compile::Plan& plan, std::size_t index, DeviceDriver& driver, const std::function<void()>& run);
  std::vector<StepTiming> records() const;
  /// A JSON document for chrome://tracing or Perfetto.
  std::string chrome_trace() const;

 private:
  mutable std::mutex mutex_;
  std::vector<StepTiming> records_;
};

/// One line a step: kernel, sizes, bytes.
std::string describe_steps(const compile::Plan& plan);
/// What a step does, in words: "matmul [64, 128] x [128, 10]", "row group [64, 1000] exp sum div". Of a bundle:
/// what it holds, members that are alike but for their sizes together, "bundle of 3: 2 row group [64, 1000] exp sum div
/// in 2 sizes; 1 matmul [64, 128] x [128, 10]"; of more than 16 kinds, the first.
std::string describe(const compile::Step& step);

}  // namespace russet::runtime
