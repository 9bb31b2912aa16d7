// The program's own malloc, calloc, realloc, aligned_alloc, posix_memalign, memalign and mmap: the dynamic linker
// prefers them to libc's, for every library. They count, and hand over to libc.
#include "memory/allocation_watch.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#include <fmt/format.h>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

constexpr std::size_t unarmed = ~std::size_t{0};
std::atomic<std::size_t> threshold{unarmed};
std::atomic<std::uint64_t> counted{0};

/// The calls that led to the first allocation; written by the thread that counted it.
struct Offender {
  std::size_t bytes = 0;
  std::array<void*, 32> calls{};
  std::atomic<int> depth{0};
};
Offender offender;

/// OpenBLAS hands out the work of a product by a table of 512 KiB that it allocates anew: on processors without
/// AVX-512, where products are not oneDNN's.
bool is_by_openblas(std::span<void* const> calls) {
  constexpr std::size_t nearest = 4;  // calls, those of this file among them
  return std::ranges::any_of(calls.first(std::min(nearest, calls.size())), [](void* address) {
    Dl_info info{};
    return dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
           std::strstr(info.dli_fname, "libopenblas") != nullptr;
  });
}

void note(std::size_t bytes) {
  if (bytes <= threshold.load(std::memory_order_relaxed)) return;
  std::array<void*, 32> calls{};
  const int depth = backtrace(calls.data(), static_cast<int>(calls.size()));
  if (is_by_openblas(std::span(calls).first(static_cast<std::size_t>(depth))) || counted.fetch_add(1) != 0) return;
  offender.bytes = bytes;
  offender.calls = calls;
  offender.depth.store(depth);
}

std::string name_of(void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_sname == nullptr) {
    return fmt::format("{} {}", address, info.dli_fname == nullptr ? "" : info.dli_fname);
  }
  int status = 0;
  char* const plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  std::string name = status == 0 ? plain : info.dli_sname;
  std::free(plain);
  return name;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) {
  note(count * bytes);
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, std::size_t bytes) {
  note(bytes);
  return __libc_realloc(memory, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  note(bytes);
  void* const found = __libc_memalign(alignment, bytes);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}

void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  note(bytes);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
}

namespace russet {

AllocationWatch::AllocationWatch(std::size_t above) {
  std::array<void*, 1> warm{};
  backtrace(warm.data(), 1);  // loads what it needs, which allocates
  counted = 0;
  offender.depth = 0;
  threshold = above;
}

AllocationWatch::~AllocationWatch() { threshold = unarmed; }

std::uint64_t AllocationWatch::count() const { return counted; }

std::string AllocationWatch::first() const {
  const std::size_t before = threshold.exchange(unarmed);
  std::string text;
  const int depth = offender.depth;
  if (depth > 0) text = fmt::format("{} bytes, by\n", offender.bytes);
  for (int i = 2; i < depth; ++i) text += fmt::format("  {}\n", name_of(offender.calls[static_cast<std::size_t>(i)]));
  threshold = before;
  return text;
}

}  // namespace russet
