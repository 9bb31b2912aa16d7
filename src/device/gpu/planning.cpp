#include "device/gpu/planning.h"

#include <russet/error.h>

#include "device/gpu/target.h"

namespace russet::gpu {
namespace {

/// What all of Apple's GPUs grant a threadgroup.
constexpr std::uint32_t max_threads = 1024;
constexpr std::uint32_t group_memory = 32768;

class PlanningDriver final : public Driver {
 public:
  PlanningDriver(DeviceType device, Properties properties, std::vector<std::unique_ptr<const VendorLibrary>> libraries)
      : properties_(std::move(properties)), libraries_(std::move(libraries)), target_(make_target(*this, device)) {}
  runtime::DeviceProperties properties() const override { return {}; }
  const compile::Target& target() const override { return *target_; }
  bool runs() const override { return false; }
  Properties gpu_properties() const override { return properties_; }
  std::span<const std::unique_ptr<const VendorLibrary>> vendor_libraries() const override { return libraries_; }
  std::byte* allocate(std::size_t) override { throw InternalError("a GPU that only plans has no memory"); }
  void release(std::byte*, std::size_t) override {}
  void upload(std::byte*, std::span<const std::byte>) override {}
  void clear(std::byte*, std::size_t) override {}
  void download(std::span<std::byte>, const std::byte*) override {}
  std::vector<std::shared_ptr<const Pipeline>> build(std::span<const CompilationUnit>) override { return {}; }
  void launch(const Launch&) override {}
  const void* block_of(const std::byte*, std::size_t) const override { return nullptr; }
  void barrier() override {}
  void commit() override {}

 private:
  Properties properties_;
  std::vector<std::unique_ptr<const VendorLibrary>> libraries_;
  std::unique_ptr<compile::Target> target_;
};

const bool registered = [] {
  runtime::register_planner(DeviceType::mps, make_mps_planner);
  return true;
}();

}  // namespace

std::unique_ptr<Driver> make_planning_driver(DeviceType device, Properties properties,
                                             std::vector<std::unique_ptr<const VendorLibrary>> libraries) {
  return std::make_unique<PlanningDriver>(device, std::move(properties), std::move(libraries));
}

std::unique_ptr<Driver> make_mps_planner(std::string_view name) {
  const Chip& chip = name.empty() ? chips().front() : chip_of(name);
  return make_planning_driver(
      DeviceType::mps,
      {.family = std::string(chip.family), .max_threads = max_threads, .group_memory = group_memory, .chip = chip});
}

}  // namespace russet::gpu
