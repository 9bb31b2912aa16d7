#include "device/gpu/cuda/driver.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <mutex>

#include "base/log.h"
#include "device/gpu/cuda/compiler.h"
#include "device/gpu/cuda/memory.h"
#include "device/gpu/cuda/stream_queue.h"
#include "device/gpu/cuda/vendor_libraries.h"
#include "device/gpu/driver/backend.h"

namespace russet::cuda {
namespace {

/// No watchdog ends long launches of a GPU that shows no picture; on one that does, others shall still get their turn.
constexpr double longest_launch = 0.5;
/// Measured on an H200: training resnet50 took 39 ms where all steps may share launches, 30 where none may. A launch
/// less saves what moving this much takes.
constexpr std::size_t most_shared_bytes = std::size_t{1} << 20;

class Cuda final : public gpu::Backend {
 public:
  Cuda() : memory_(context_), compiler_(context_) {}

  DeviceType type() const override { return DeviceType::cuda; }

  runtime::DeviceProperties properties() const override {
    runtime::DeviceProperties properties;
    properties.name = context_.name();
    for (int type = 0; type < dtype_count; ++type) {
      if (static_cast<DType>(type) != DType::float64) properties.dtypes.push_back(static_cast<DType>(type));
    }
    properties.cores = cores();
    properties.memory_bytes = context_.memory_bytes();
    properties.instruction_sets = {family()};
    return properties;
  }

  gpu::Properties gpu_properties() const override {
    gpu::Properties properties;
    properties.family = family();
    properties.max_threads = static_cast<std::uint32_t>(context_.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    properties.group_memory =
        static_cast<std::uint32_t>(context_.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    properties.chip = chip();
    properties.longest_launch = longest_launch;
    properties.takes_prologues = false;  // they cost resnet50's training 1 ms of 28, lenet5's 0.1 of 0.37
    properties.most_shared_bytes = most_shared_bytes;
    properties.has_fragments = true;
    properties.row_elements = 32;
    properties.kept_values = 128;
    properties.name = context_.name();
    properties.system = fmt::format("driver {}, {}", context_.driver_version(), compiler_.name());
    return properties;
  }

  gpu::BlockSource& memory() override { return memory_; }
  std::unique_ptr<gpu::Queue> make_queue(gpu::MemoryBlocks& blocks) override {
    return std::make_unique<StreamQueue>(context_, blocks);
  }
  std::vector<gpu::PipelinePtr> compile(const gpu::CompilationUnit& unit) override { return compiler_.compile(unit); }

  std::span<const std::unique_ptr<const gpu::VendorLibrary>> vendor_libraries() const override {
    std::call_once(asked_for_libraries_, [this] {
      add_library(make_cudnn);
      add_library(make_cublaslt);
    });
    return libraries_;
  }

  bool shares_memory_with_host() const override { return false; }
  void copy_to_device(std::byte* target, std::span<const std::byte> source) override {
    memory_.copy_to_device(target, source);
  }
  void copy_to_host(std::span<std::byte> target, const std::byte* source) override {
    memory_.copy_to_host(target, source);
  }

 private:
  /// Without it, our own kernels do the work.
  void add_library(std::unique_ptr<const gpu::VendorLibrary> (*make)(const Context&)) const {
    try {
      libraries_.push_back(make(context_));
    } catch (const DeviceError& error) {
      static const base::Log log("kernels");
      log("cuda: {}", error.what());
    }
  }

  std::string family() const { return fmt::format("sm_{}", context_.capability()); }
  int cores() const { return context_.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); }

  /// By what the GPU says of its clocks: two transfers a clock of the memory, 128 multiply-adds a core and clock.
  Chip chip() const {
    const auto attribute = [&](CUdevice_attribute which) { return static_cast<double>(context_.attribute(which)); };
    const double memory_clock = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) * 1e3;
    const double clock = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) * 1e3;
    Chip chip;
    chip.name = context_.name();
    chip.cores = cores();
    chip.gigabytes_a_second = 2 * memory_clock * attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8 * 1e-9;
    chip.teraflops = 2 * 128 * clock * chip.cores * 1e-12;
    chip.family = chip.name;
    return chip;
  }

  Context context_;
  Memory memory_;
  Compiler compiler_;
  mutable std::once_flag asked_for_libraries_;
  mutable std::vector<std::unique_ptr<const gpu::VendorLibrary>> libraries_;
};

}  // namespace

std::unique_ptr<gpu::Driver> make_driver() { return gpu::make_driver(std::make_unique<Cuda>()); }

}  // namespace russet::cuda
