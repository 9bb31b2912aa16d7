#include "metal/fixture.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "device/gpu/simulator/cache.h"

namespace russet::metal_test {

std::vector<std::string> reports() {
  std::vector<std::string> lines;
  for (const simulator::CheckReport& report : simulator::take_reports()) {
    lines.push_back(fmt::format("{}: {}", report.check, report.message));
  }
  return lines;
}

Metal::Metal() : cache_(std::filesystem::temp_directory_path() / fmt::format("russet_metal_{}", getpid())) {
  // What clang compiled before serves here, too; archives and finds are this test's own.
  static const std::filesystem::path compiled = simulator::cache_folder();
  std::filesystem::create_directories(compiled);
  std::filesystem::create_directories(cache_ / "russet");
  std::filesystem::create_directory_symlink(compiled, cache_ / "russet/simulator");
  setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
  unsetenv("RUSSET_CACHE");
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
  const gpu::CompilationUnit unit{std::string(kernels), {{"scale", 64}, {"bump_all", 64}, {"copy_part", 32}}};
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

void Metal::bump_all(const std::vector<std::unique_ptr<Floats>>& all, std::uint32_t more) {
  struct Member {
    std::uint64_t place = 0;
    std::uint32_t count = 0, unused = 0;
  };
  std::vector<Member> members;
  std::vector<gpu::Binding> buffers;
  std::vector<std::uint32_t> places;
  for (const auto& floats : all) {
    places.push_back(static_cast<std::uint32_t>(members.size() * sizeof(Member)));
    members.push_back({0, static_cast<std::uint32_t>(std::min<std::size_t>(floats->count(), 64)) + more, 0});
    buffers.push_back({floats->memory(), floats->bytes(), true});
  }
  gpu::Launch launch;
  launch.pipeline = pipelines_[1].get();
  launch.groups = {static_cast<std::uint32_t>(all.size()), 1, 1};
  launch.threads = 64;
  launch.buffers = buffers;
  launch.parameters = std::as_bytes(std::span(members));
  launch.bases = 3;
  launch.places = places;
  driver_->launch(launch);
}

void Metal::scale_bytes(std::byte* x, std::byte* y, std::size_t bytes) { launch(x, y, bytes / sizeof(float), 1); }

void Metal::copy_part(const Floats& x, const Floats& y, std::uint32_t at) {
  const std::array buffers{gpu::Binding{x.memory(), x.bytes(), false},
                           gpu::Binding{y.memory(), y.bytes(), true, at > 0}};
  gpu::Launch launch;
  launch.pipeline = pipelines_[2].get();
  launch.buffers = buffers;
  launch.parameters = std::as_bytes(std::span(&at, 1));
  driver_->launch(launch);
}

double Metal::time_scale(const Floats& x, const Floats& y, float factor, int times) {
  double seconds = 0;
  launch(x.memory(), y.memory(), x.count(), factor, [&](const gpu::Launch& launch) {
    seconds = driver_->time(std::vector<gpu::Launch>(static_cast<std::size_t>(times), launch));
  });
  return seconds;
}

void Metal::launch(std::byte* x, std::byte* y, std::size_t count, float factor,
                   const std::function<void(const gpu::Launch&)>& run) {
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
  launch.seconds = modelled_seconds;
  if (run) return run(launch);
  driver_->launch(launch);
}

}  // namespace russet::metal_test
