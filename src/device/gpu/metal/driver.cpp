#include "device/gpu/metal/driver.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <cstdlib>
#include <cstring>

#include "device/gpu/driver/backend.h"
#include "device/gpu/metal/capture.h"
#include "device/gpu/metal/command_queue.h"
#include "device/gpu/metal/compiler.h"
#include "device/gpu/metal/hooks.h"
#include "device/gpu/metal/memory.h"

namespace russet::metal {
namespace {

/// The longest launch in seconds: from the environment, or short enough for macOS's watchdog and for the responsiveness
/// of other programs even where a kernel is much slower than modelled.
double longest_launch() {
  const char* const wish = std::getenv("RUSSET_METAL_LAUNCH_MS");
  if (wish == nullptr) return gpu::Properties().longest_launch;
  char* end = nullptr;
  const double milliseconds = std::strtod(wish, &end);
  if (end == wish || *end != '\0' || !(milliseconds >= 0)) {
    throw ValueError(fmt::format("RUSSET_METAL_LAUNCH_MS is \"{}\", which is no number of milliseconds", wish));
  }
  return milliseconds * 1e-3;
}

class Metal final : public gpu::Backend {
 public:
  Metal()
      : gpu_(find_gpu()),
        longest_launch_(longest_launch()),
        memory_(gpu_),
        compiler_(gpu_, archive_folder()),
        capture_(gpu_) {}

  DeviceType type() const override { return DeviceType::mps; }

  runtime::DeviceProperties properties() const override {
    runtime::DeviceProperties properties;
    properties.name = gpu_.name;
    for (int type = 0; type < dtype_count; ++type) {
      if (static_cast<DType>(type) != DType::float64) properties.dtypes.push_back(static_cast<DType>(type));
    }
    properties.cores = 0;  // Metal does not tell
    properties.memory_bytes = gpu_.working_set;
    properties.instruction_sets = {family(), "msl3.1"};
    return properties;
  }

  gpu::Properties gpu_properties() const override {
    gpu::Properties properties;
    properties.family = family();
    properties.max_threads = static_cast<std::uint32_t>(gpu_.max_threads);
    properties.group_memory = static_cast<std::uint32_t>(gpu_.group_memory);
    properties.chip = chip_of_gpu(gpu_.name);
    properties.longest_launch = longest_launch_;
    properties.name = gpu_.name;
    properties.system = gpu_.system;
    return properties;
  }

  gpu::BlockSource& memory() override { return memory_; }
  std::unique_ptr<gpu::Queue> make_queue(gpu::MemoryBlocks& blocks) override {
    return std::make_unique<CommandQueue>(gpu_, memory_, blocks, capture_);
  }
  std::vector<gpu::PipelinePtr> compile(const gpu::CompilationUnit& unit) override { return compiler_.compile(unit); }

  bool shares_memory_with_host() const override { return true; }
  void clear(std::byte* target, std::size_t bytes) override { std::fill_n(target, bytes, std::byte{0}); }
  void copy_to_device(std::byte* target, std::span<const std::byte> source) override {
    std::memcpy(target, source.data(), source.size());
  }
  void copy_to_host(std::span<std::byte> target, const std::byte* source) override {
    std::memcpy(target.data(), source, target.size());
  }

  bool tracks_values() const override { return hooks != nullptr; }
  void granted(base::ByteRange range) override {
    if (hooks != nullptr) hooks->grant(range.address(), range.bytes());
  }
  void host_wrote(base::ByteRange range) override {
    if (hooks != nullptr) hooks->written(range.address(), range.bytes());
  }

 private:
  std::string family() const { return fmt::format("apple{}", gpu_.family); }

  Gpu gpu_;
  double longest_launch_;
  Memory memory_;
  Compiler compiler_;
  Capture capture_;
};

}  // namespace

std::unique_ptr<gpu::Driver> make_driver() { return gpu::make_driver(std::make_unique<Metal>()); }

}  // namespace russet::metal
