// The cpu device: host memory, and kernels that run when they are called.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>
#include <russet/error.h>
#include <algorithm>
#include <cstdlib>

#include "base/parallel.h"
#include "device/cpu/cpuid.h"
#include "device/cpu/target.h"
#include "runtime/device.h"

namespace russet::cpu {
namespace {

using runtime::page;
constexpr std::size_t cache_line = 64;
/// Buffers of at least this size are mapped by themselves, so that the system gets their memory back on release.
constexpr std::size_t mapped_from = std::size_t{1} << 20;

std::size_t machine_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t rounded(std::size_t bytes) {
  const std::size_t unit = bytes > page ? page : cache_line;
  return std::max(cache_line, (bytes + unit - 1) / unit * unit);
}

void* map(std::size_t bytes, void* wish = nullptr) {
  return mmap(wish, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/// `bytes`, which are whole pages, at a multiple of a page; MAP_FAILED if there are none.
void* map_pages(std::size_t bytes) {
  const auto past = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory) % page; };
  void* const memory = map(bytes);
  if (memory == MAP_FAILED || past(memory) == 0) return memory;
  munmap(memory, bytes);
  // The aligned address just below is tried next: near the limit of a process's address space a larger mapping fails.
  void* const below = map(bytes, static_cast<std::byte*>(memory) - past(memory));
  if (below == MAP_FAILED || past(below) == 0) return below;
  munmap(below, bytes);
  void* const room = map(bytes + page);
  if (room == MAP_FAILED) return room;
  const std::size_t before = (page - past(room)) % page;
  auto* const begin = static_cast<std::byte*>(room) + before;
  if (before > 0) munmap(room, before);
  if (before < page) munmap(begin + bytes, page - before);
  return begin;
}

[[noreturn]] void throw_out_of_memory(std::size_t bytes) {
  rlimit limit{};
  std::string bound = fmt::format("the machine has {} bytes", machine_memory());
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bound = fmt::format("the process may use {} bytes of addresses (RLIMIT_AS)",
                        static_cast<std::uint64_t>(limit.rlim_cur));
  }
  throw OutOfMemoryError(fmt::format(
      "cpu: {} bytes are needed and the system does not grant them; {}. Use a smaller batch?", bytes, bound));
}

class Driver final : public runtime::DeviceDriver {
 public:
  runtime::DeviceProperties properties() const override {
    runtime::DeviceProperties properties;
    properties.name = processor_name();
    for (int type = 0; type < dtype_count; ++type) properties.dtypes.push_back(static_cast<DType>(type));
    properties.cores = base::thread_count();
    properties.memory_bytes = machine_memory();
    properties.instruction_sets = instruction_sets();
    return properties;
  }

  const compile::Target& target() const override { return cpu::target(); }

  std::byte* allocate(std::size_t bytes) override {
    if (bytes > machine_memory() * 64) throw_out_of_memory(bytes);
    if (bytes >= mapped_from) {
      void* const memory = map_pages(rounded(bytes));
      if (memory == MAP_FAILED) throw_out_of_memory(bytes);
#ifdef MADV_HUGEPAGE
      madvise(memory, rounded(bytes), MADV_HUGEPAGE);
#endif
      return static_cast<std::byte*>(memory);
    }
    void* const memory = std::aligned_alloc(bytes > page ? page : cache_line, rounded(bytes));
    if (memory == nullptr) throw_out_of_memory(bytes);
    return static_cast<std::byte*>(memory);
  }

  void release(std::byte* memory, std::size_t bytes) override {
    if (bytes >= mapped_from) {
      munmap(memory, rounded(bytes));
    } else {
      std::free(memory);
    }
  }

  /// Kernels have run when they return, so nothing has to be waited for.
  bool lend(const std::byte* /*memory*/, std::size_t /*bytes*/) override { return true; }
  bool borrow(std::byte* /*memory*/, std::size_t /*bytes*/) override { return true; }
  std::shared_ptr<const std::byte> peek(const std::byte* memory, std::size_t /*bytes*/) override {
    return runtime::in_place(memory);
  }

  void upload(std::byte* target, std::span<const std::byte> source) override {
    std::copy(source.begin(), source.end(), target);
  }
  void clear(std::byte* target, std::size_t bytes) override { std::fill_n(target, bytes, std::byte{0}); }
  void download(std::span<std::byte> target, const std::byte* source) override {
    std::copy_n(source, target.size(), target.begin());
  }
};

const bool registered = [] {
  runtime::register_device(DeviceType::cpu, [] { return std::make_unique<Driver>(); });
  return true;
}();

}  // namespace
}  // namespace russet::cpu
