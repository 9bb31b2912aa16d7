#include "metal/fixture.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace russet::metal_test {

std::vector<std::string> reports() {
  std::vector<std::string> lines;
  for (const simulator::Report& report : simulator::take_reports()) {
    lines.push_back(fmt::format("{}: {}", report.check, report.message));
  }
  return lines;
}

Metal::Metal() : cache_(std::filesystem::temp_directory_path() / fmt::format("russet_metal_{}", getpid())) {
  std::filesystem::create_directories(cache_);
  setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
  reports();
  live_ = objects::live_objects();
  start();
}

Metal::~Metal() {
  pipelines_.clear();
  driver_.reset();
  objects::drain();
  objects::settings() = {};
  EXPECT_EQ(objects::live_objects(), live_);
  EXPECT_EQ(reports(), std::vector<std::string>{});
  std::filesystem::remove_all(cache_);
}

void Metal::start() {
  driver_ = metal::make_driver();
  const gpu::Unit unit{std::string(kernels), {{"scale", 64}}};
  pipelines_ = driver_->build({&unit, 1});
}

void Metal::restart(const std::function<void()>& change) {
  pipelines_.clear();
  driver_.reset();
  objects::drain();
  if (change) change();
  start();
}

void Metal::scale(const Floats& x, const Floats& y, float factor, std::size_t count, std::size_t first) {
  const std::size_t at = first * sizeof(float);
  launch(x.memory() + at, y.memory() + at, count == 0 ? x.count() : count, factor);
}

void Metal::scale_bytes(std::byte* x, std::byte* y, std::size_t bytes) { launch(x, y, bytes / sizeof(float), 1); }

void Metal::launch(std::byte* x, std::byte* y, std::size_t count, float factor) {
  struct {
    std::uint32_t count;
    float factor;
  } const values{static_cast<std::uint32_t>(count), factor};
  const std::array buffers{gpu::Binding{x, count * sizeof(float), false}, gpu::Binding{y, count * sizeof(float), true}};
  gpu::Launch launch;
  launch.pipeline = pipelines_[0].get();
  launch.groups = {static_cast<std::uint32_t>((count + 63) / 64), 1, 1};
  launch.threads = 64;
  launch.buffers = buffers;
  launch.parameters = std::as_bytes(std::span(&values, 1));
  driver_->launch(launch);
}

}  // namespace russet::metal_test
