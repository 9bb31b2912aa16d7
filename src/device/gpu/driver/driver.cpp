// The driver's parts put together: memory, kernels and timeline behind the interfaces of runtime and gpu.
#include <fmt/format.h>

#include <mutex>

#include "device/gpu/driver/backend.h"
#include "device/gpu/driver/host_copies.h"
#include "device/gpu/driver/recorded_runs.h"
#include "device/gpu/driver/timeline.h"
#include "device/gpu/target.h"

namespace russet::gpu {
namespace {

class BackendDriver final : public Driver {
 public:
  explicit BackendDriver(std::unique_ptr<Backend> backend)
      : backend_(std::move(backend)),
        name_(to_string(Device(backend_->type()))),
        memory_(backend_->memory(), name_),
        kernels_([this](const CompilationUnit& unit) { return backend_->compile(unit); }),
        timeline_(make_timeline()) {}

  runtime::DeviceProperties properties() const override { return backend_->properties(); }
  std::vector<LibraryInfo> libraries() const override { return backend_->libraries(); }
  Properties gpu_properties() const override { return backend_->gpu_properties(); }
  bool shares_memory_with_host() const override { return backend_->shares_memory_with_host(); }

  /// Made when it is first asked for: devices are registered before the library's tables are complete.
  const compile::Target& target() const override {
    std::call_once(target_once_,
                   [this] { target_ = make_target(const_cast<BackendDriver&>(*this), backend_->type()); });
    return *target_;
  }

  std::byte* allocate(std::size_t bytes) override {
    std::byte* const memory = memory_.allocate(bytes);
    const std::lock_guard lock(mutex_);
    const base::ByteRange range = base::range_of(memory, bytes);
    timeline_->forget(range);
    host_copies_.forget(range);
    backend_->granted(range);
    return memory;
  }

  void release(std::byte* memory, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    const base::ByteRange range = base::range_of(memory, bytes);
    timeline_->wait_for(range, Timeline::HostAccess::write);
    timeline_->forget(range);
    memory_.release(memory, bytes);
  }

  void upload(std::byte* target, std::span<const std::byte> source) override {
    if (source.empty()) return;
    const std::lock_guard lock(mutex_);
    const base::ByteRange range = base::range_of(target, source.size());
    if (backend_->shares_memory_with_host() || !timeline_->upload(target, source)) {
      timeline_->wait_for(range, Timeline::HostAccess::write);
      backend_->copy_to_device(target, source);
    }
    note_written_by_host(range);
    if (!backend_->shares_memory_with_host()) host_copies_.keep(target, source);
  }

  graph::StagingMemory allocate_staging(std::size_t bytes) override { return backend_->allocate_staging(bytes); }

  void upload_staged(std::byte* target, const graph::StagingMemory& source, std::size_t bytes) override {
    if (bytes == 0) return;
    const std::lock_guard lock(mutex_);
    timeline_->upload_staged(target, source, bytes);
    note_written_by_host(base::range_of(target, bytes));
    host_copies_.keep(target, {source.get(), bytes});
  }

  void finish_copies(const graph::StagingMemory& source) override {
    const std::lock_guard lock(mutex_);
    timeline_->finish_copies(source);
  }

  void clear(std::byte* target, std::size_t bytes) override {
    if (bytes == 0) return;
    const std::lock_guard lock(mutex_);
    const base::ByteRange range = base::range_of(target, bytes);
    if (backend_->shares_memory_with_host() || !timeline_->clear(target, bytes)) {
      timeline_->wait_for(range, Timeline::HostAccess::write);
      backend_->clear(target, bytes);
    }
    note_written_by_host(range);
    host_copies_.forget(range);
  }

  void download(std::span<std::byte> target, const std::byte* source) override {
    if (target.empty()) return;
    const std::lock_guard lock(mutex_);
    const base::ByteRange range = base::range_of(source, target.size());
    timeline_->wait_for(range, Timeline::HostAccess::read);
    timeline_->check(range);
    backend_->copy_to_host(target, source);
    if (!backend_->shares_memory_with_host()) host_copies_.keep(source, target);
  }

  bool lend(const std::byte* memory, std::size_t bytes) override {
    if (!backend_->shares_memory_with_host()) return false;
    const std::lock_guard lock(mutex_);
    const base::ByteRange range = base::range_of(memory, bytes);
    timeline_->wait_for(range, Timeline::HostAccess::read);
    timeline_->check(range);
    return true;
  }

  std::shared_ptr<const std::byte> peek(const std::byte* memory, std::size_t bytes) override {
    const base::ByteRange range = base::range_of(memory, bytes);
    const std::lock_guard lock(mutex_);
    if (!backend_->shares_memory_with_host()) return copy_of(range, memory);
    return timeline_->is_idle(range) ? runtime::in_place(memory) : nullptr;
  }

  bool borrow(std::byte* memory, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (!memory_.borrow(memory, bytes)) return false;
    timeline_->forget(base::range_of(memory, bytes));
    return true;
  }

  void end_borrowing(const Ref<graph::Buffer>& lender) override {
    const std::lock_guard lock(mutex_);
    timeline_->end_borrowing(lender);
  }

  void keep_times(bool keeps) override {
    const std::lock_guard lock(mutex_);
    timeline_->keep_times(keeps);
  }

  double busy_seconds() const override {
    const std::lock_guard lock(mutex_);
    return timeline_->gpu_seconds();
  }

  bool tracks_values() const override { return backend_->tracks_values(); }

  void begin_value(std::byte* address, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    timeline_->begin_value(base::range_of(address, bytes));
  }

  void host_wrote(std::byte* address, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    note_written_by_host(base::range_of(address, bytes));
  }

  void synchronize() override {
    const std::lock_guard lock(mutex_);
    timeline_->synchronize();
  }

  std::vector<PipelinePtr> build(std::span<const CompilationUnit> units) override { return kernels_.build(units); }

  std::span<const std::unique_ptr<const VendorLibrary>> vendor_libraries() const override {
    return backend_->vendor_libraries();
  }

  void launch(const Launch& launch) override {
    const std::lock_guard lock(mutex_);
    for (const Binding& binding : launch.buffers) {
      if (binding.writes) host_copies_.forget(base::range_of(binding.address, binding.bytes));
    }
    timeline_->launch(launch);
  }

  bool repeat(const runtime::PlanRun& run) override {
    const std::lock_guard lock(mutex_);
    if (!timeline_->keeps_launches()) return false;
    const Recording* const recording = runs_.find(run);
    if (recording == nullptr || !timeline_->repeat(*recording, run.arguments)) {
      timeline_->start_recording();
      return false;
    }
    for (const base::ByteRange range : recording->writes) host_copies_.forget(range);
    return true;
  }

  void remember(const runtime::PlanRun& run) override {
    const std::lock_guard lock(mutex_);
    if (!timeline_->keeps_launches() || !runs_.note(run)) return;
    if (std::optional<Recording> recording = timeline_->recording()) runs_.keep(run, std::move(*recording));
  }

  const void* block_of(const std::byte* address, std::size_t bytes) const override {
    return memory_.find(address, bytes).binding_of(address, bytes);
  }

  void barrier() override {
    const std::lock_guard lock(mutex_);
    timeline_->barrier();
  }

  void commit() override {
    const std::lock_guard lock(mutex_);
    timeline_->submit();
  }

  /// Uses a timeline of its own, so that a failure affects nothing else.
  double time(std::span<const Launch> launches) override {
    const std::lock_guard lock(mutex_);
    timeline_->finish();
    const std::unique_ptr<Timeline> timed = make_timeline();
    timed->keep_times(true);
    for (const Launch& launch : launches) {
      timed->launch(launch);
      timed->barrier();
    }
    timed->synchronize();
    return timed->gpu_seconds();
  }

 private:
  /// Waits and copies once: whoever does not get to see the memory waits whenever it is used.
  std::shared_ptr<const std::byte> copy_of(base::ByteRange range, const std::byte* memory) {
    if (auto known = host_copies_.find(range)) return known;
    if (range.bytes() > HostCopies::most_of_one) return nullptr;
    timeline_->wait_for(range, Timeline::HostAccess::read);
    if (!timeline_->is_idle(range)) return nullptr;  // it is lost
    std::vector<std::byte> content(range.bytes());
    backend_->copy_to_host(content, memory);
    host_copies_.keep(memory, content);
    return host_copies_.find(range);
  }

  void note_written_by_host(base::ByteRange range) {
    timeline_->forget(range);
    backend_->host_wrote(range);
  }

  std::unique_ptr<Timeline> make_timeline() {
    return std::make_unique<Timeline>(backend_->make_queue(memory_), name_, [this](const Ref<graph::Buffer>& lender) {
      memory_.end_borrowing(lender->data());
    });
  }

  std::unique_ptr<Backend> backend_;
  std::string name_;
  MemoryBlocks memory_;
  KernelCache kernels_;
  mutable std::mutex mutex_;
  HostCopies host_copies_;  // where the memory is not the host's
  std::unique_ptr<Timeline> timeline_;
  RecordedRuns runs_;
  mutable std::once_flag target_once_;
  mutable std::unique_ptr<const compile::Target> target_;
};

}  // namespace

std::unique_ptr<Driver> make_driver(std::unique_ptr<Backend> backend) {
  return std::make_unique<BackendDriver>(std::move(backend));
}

}  // namespace russet::gpu
