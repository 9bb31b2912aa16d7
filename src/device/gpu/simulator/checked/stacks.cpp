#include "stacks.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <sys/mman.h>
#include <mutex>
#include <vector>

namespace russet::simulator {
namespace {

std::byte* reserve(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw OutOfMemoryError(fmt::format("simulated GPU: no {} bytes of address space", bytes));
  return static_cast<std::byte*>(memory);
}

}  // namespace

std::uintptr_t Stacks::offset_ = 0;
std::byte* Stacks::all_ = nullptr;
std::array<Executor*, Stacks::most> Stacks::owners_{};

/// Address space for all stacks, so that their shadow lies at one offset.
struct Stacks::Room {
  std::byte* stacks = reserve(area * most);
  std::byte* shadow = reserve(area * most / 8);
  std::mutex mutex;
  std::vector<std::size_t> free;

  Room() {
    for (std::size_t i = most; i > 0; --i) free.push_back(i - 1);
    all_ = stacks;
    offset_ = reinterpret_cast<std::uintptr_t>(shadow) - reinterpret_cast<std::uintptr_t>(stacks) / 8;
  }
};

Stacks::Room& Stacks::room() {
  static auto* const all = new Room;  // threads of the pool may outlive static destructors
  return *all;
}

std::uintptr_t Stacks::shadow_offset() {
  room();
  return offset_;
}

Stacks::Stacks(Executor& owner) {
  Room& all = room();
  const std::lock_guard lock(all.mutex);
  if (all.free.empty()) throw OutOfMemoryError(fmt::format("simulated GPU: more than {} threads run kernels", most));
  begin_ = all.stacks + all.free.back() * area;
  owners_[all.free.back()] = &owner;
  all.free.pop_back();
}

Stacks::~Stacks() {
  forget();
  madvise(begin_, area, MADV_DONTNEED);
  Room& all = room();
  const std::lock_guard lock(all.mutex);
  all.free.push_back(static_cast<std::size_t>(begin_ - all.stacks) / area);
}

void Stacks::forget() {
  const std::uintptr_t shadow = reinterpret_cast<std::uintptr_t>(begin_) / 8 + offset_;
  madvise(reinterpret_cast<void*>(shadow), area / 8, MADV_DONTNEED);
}

}  // namespace russet::simulator
