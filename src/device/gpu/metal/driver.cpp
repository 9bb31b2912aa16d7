// The driver's parts put together: memory, compiler and stream behind the interfaces of runtime and gpu.
#include "device/gpu/metal/driver.h"

#include <fmt/format.h>

#include <russet/error.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "device/gpu/metal/command_stream.h"
#include "device/gpu/metal/compiler.h"
#include "device/gpu/metal/hooks.h"
#include "device/gpu/metal/memory_blocks.h"
#include "device/gpu/target.h"

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

class Driver final : public gpu::Driver {
 public:
  Driver()
      : gpu_(find_gpu()),
        longest_launch_(longest_launch()),
        memory_(gpu_),
        compiler_(gpu_, archive_folder()),
        capture_(gpu_),
        stream_(gpu_, memory_, &capture_) {}

  runtime::DeviceProperties properties() const override {
    runtime::DeviceProperties properties;
    properties.name = gpu_.name;
    for (int type = 0; type < dtype_count; ++type) {
      if (static_cast<DType>(type) != DType::float64) properties.dtypes.push_back(static_cast<DType>(type));
    }
    properties.cores = 0;  // Metal does not tell
    properties.memory_bytes = gpu_.working_set;
    properties.instruction_sets = {fmt::format("apple{}", gpu_.family), "msl3.1"};
    return properties;
  }

  /// Made when it is first asked for: devices are registered before the library's tables are complete.
  const compile::Target& target() const override {
    std::call_once(target_once_, [this] { target_ = gpu::make_target(const_cast<Driver&>(*this), DeviceType::mps); });
    return *target_;
  }

  std::byte* allocate(std::size_t bytes) override {
    std::byte* const memory = memory_.allocate(bytes);
    const std::lock_guard lock(mutex_);
    stream_.forget(base::range_of(memory, bytes));
    if (hooks != nullptr) hooks->grant(memory, bytes);
    return memory;
  }

  void release(std::byte* memory, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    stream_.wait_for(base::range_of(memory, bytes), CommandStream::HostAccess::write);
    stream_.forget(base::range_of(memory, bytes));
    memory_.release(memory, bytes);
  }

  void upload(std::byte* target, std::span<const std::byte> source) override {
    if (source.empty()) return;
    const std::lock_guard lock(mutex_);
    const base::ByteRange range = base::range_of(target, source.size());
    stream_.wait_for(range, CommandStream::HostAccess::write);
    std::memcpy(target, source.data(), source.size());
    stream_.forget(range);
    if (hooks != nullptr) hooks->written(target, source.size());
  }

  void download(std::span<std::byte> target, const std::byte* source) override {
    if (target.empty()) return;
    const std::lock_guard lock(mutex_);
    const base::ByteRange range = base::range_of(source, target.size());
    stream_.wait_for(range, CommandStream::HostAccess::read);
    stream_.check(range);
    std::memcpy(target.data(), source, target.size());
  }

  bool lend(const std::byte* memory, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const base::ByteRange range = base::range_of(memory, bytes);
    stream_.wait_for(range, CommandStream::HostAccess::read);
    stream_.check(range);
    return true;
  }
  bool is_idle(const std::byte* memory, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    return stream_.is_idle(base::range_of(memory, bytes));
  }
  bool borrow(std::byte* memory, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (!memory_.borrow(memory, bytes)) return false;
    stream_.forget(base::range_of(memory, bytes));
    return true;
  }
  void end_borrowing(const Ref<graph::Buffer>& lender) override {
    const std::lock_guard lock(mutex_);
    stream_.end_borrowing(lender);
  }

  double busy_seconds() const override {
    const std::lock_guard lock(mutex_);
    return stream_.gpu_seconds();
  }

  bool tracks_values() const override { return hooks != nullptr; }
  void begin_value(std::byte* address, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    stream_.begin_value(base::range_of(address, bytes));
  }
  void host_wrote(std::byte* address, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    stream_.forget(base::range_of(address, bytes));
    if (hooks != nullptr) hooks->written(address, bytes);
  }

  void synchronize() override {
    const std::lock_guard lock(mutex_);
    stream_.synchronize();
  }

  gpu::Properties gpu_properties() const override {
    gpu::Properties properties;
    properties.family = fmt::format("apple{}", gpu_.family);
    properties.max_threads = static_cast<std::uint32_t>(gpu_.max_threads);
    properties.group_memory = static_cast<std::uint32_t>(gpu_.group_memory);
    properties.chip = chip_of_gpu(gpu_.name);
    properties.longest_launch = longest_launch_;
    properties.name = gpu_.name;
    properties.system = gpu_.system;
    return properties;
  }

  std::vector<std::shared_ptr<const gpu::Pipeline>> build(std::span<const gpu::CompilationUnit> units) override {
    const std::vector<PipelinePtr> pipelines = compiler_.build(units);
    return {pipelines.begin(), pipelines.end()};
  }

  void launch(const gpu::Launch& launch) override {
    const std::lock_guard lock(mutex_);
    stream_.launch(launch);
  }
  const void* block_of(const std::byte* address, std::size_t bytes) const override {
    return memory_.find(address, bytes).buffer;
  }
  void barrier() override {
    const std::lock_guard lock(mutex_);
    stream_.barrier();
  }
  void commit() override {
    const std::lock_guard lock(mutex_);
    stream_.commit();
  }

  /// Uses a command stream of its own, so that a failure affects nothing else.
  double time(std::span<const gpu::Launch> launches) override {
    const std::lock_guard lock(mutex_);
    stream_.finish();
    CommandStream timed(gpu_, memory_);
    for (const gpu::Launch& launch : launches) {
      timed.launch(launch);
      timed.barrier();
    }
    timed.synchronize();
    return timed.gpu_seconds();
  }

 private:
  Gpu gpu_;
  double longest_launch_;
  MemoryBlocks memory_;
  Compiler compiler_;
  mutable std::mutex mutex_;
  Capture capture_;
  CommandStream stream_;
  mutable std::once_flag target_once_;
  mutable std::unique_ptr<const compile::Target> target_;
};

}  // namespace

std::unique_ptr<gpu::Driver> make_driver() { return std::make_unique<Driver>(); }

}  // namespace russet::metal
