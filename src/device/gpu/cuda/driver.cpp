#include "device/gpu/cuda/driver.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <mutex>

#include "base/log.h"
#include "device/gpu/cuda/compiler.h"
#include "device/gpu/cuda/loading_thread.h"
#include "device/gpu/cuda/memory.h"
#include "device/gpu/cuda/planning/properties.h"
#include "device/gpu/cuda/stream_queue.h"
#include "device/gpu/cuda/vendor_libraries.h"
#include "device/gpu/driver/backend.h"

namespace russet::cuda {
namespace {

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
    properties.instruction_sets = {family_};
    return properties;
  }

  gpu::Properties gpu_properties() const override {
    gpu::Properties properties = properties_of(chip());
    properties.max_threads = static_cast<std::uint32_t>(context_.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    properties.group_memory =
        static_cast<std::uint32_t>(context_.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
    properties.sample_memory = sample_memory_of(
        properties.group_memory,
        static_cast<std::uint32_t>(context_.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)));
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
      add_library("cuDNN", make_cudnn);
      add_library("cuBLASLt", make_cublaslt);
    });
    return libraries_;
  }
  std::vector<LibraryInfo> libraries() const override {
    vendor_libraries();
    return library_infos_;
  }

  bool shares_memory_with_host() const override { return false; }
  graph::StagingMemory allocate_staging(std::size_t bytes) override {
    try {
      std::byte* const memory = allocate_pinned(context_, std::max<std::size_t>(bytes, 1));
      return {memory, [this](std::byte* pinned) { release_pinned(context_, pinned); }};
    } catch (const OutOfMemoryError&) {
      return nullptr;
    }
  }
  void clear(std::byte* target, std::size_t bytes) override { memory_.clear(target, bytes); }
  void copy_to_device(std::byte* target, std::span<const std::byte> source) override {
    memory_.copy_to_device(target, source);
  }
  void copy_to_host(std::span<std::byte> target, const std::byte* source) override {
    memory_.copy_to_host(target, source);
  }

 private:
  /// Without it, our own kernels do the work.
  void add_library(const char* name, std::unique_ptr<const gpu::VendorLibrary> (*make)(const Context&)) const {
    try {
      libraries_.push_back(make(context_));
      library_infos_.push_back({fmt::format("{} {}", name, libraries_.back()->version()), ""});
    } catch (const DeviceError& error) {
      static const base::Log log("kernels");
      log("cuda: {}", error.what());
      library_infos_.push_back({name, error.what()});
    }
  }

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
    chip.family = family_;
    return chip;
  }

  Context context_;
  std::string family_ = fmt::format("sm_{}", context_.capability());
  Memory memory_;
  Compiler compiler_;
  mutable std::once_flag asked_for_libraries_;
  mutable std::vector<std::unique_ptr<const gpu::VendorLibrary>> libraries_;
  mutable std::vector<LibraryInfo> library_infos_;
  /// Loading them takes 0.1 s, and 0.6 when they come from a disk: meanwhile a program makes its weights.
  LoadingThread loads_libraries_{[this] { vendor_libraries(); }};
};

}  // namespace

std::unique_ptr<gpu::Driver> make_driver() { return gpu::make_driver(std::make_unique<Cuda>()); }

}  // namespace russet::cuda
