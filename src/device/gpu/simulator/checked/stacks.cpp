#include "stacks.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <sys/mman.h>
#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

namespace russet::simulator {
namespace {

std::byte* reserve(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw OutOfMemoryError(fmt::format("simulated GPU: no {} bytes of address space", bytes));
  return static_cast<std::byte*>(memory);
}

std::byte* next_multiple(std::byte* address, std::size_t size) {
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(address) % size;
  return beyond == 0 ? address : address + (size - beyond);
}

}  // namespace

std::uintptr_t Stacks::offset_ = 0;
std::uintptr_t Stacks::unwritten_offset_ = 0;
std::byte* Stacks::all_ = nullptr;
std::array<Executor*, Stacks::most> Stacks::owners_{};

/// Address space for all stacks, so that their shadow lies at one offset. Each executor's begin at a multiple of their
/// size.
struct Stacks::Room {
  std::byte* stacks = next_multiple(reserve(area * (most + 1)), area);
  std::byte* shadow = reserve(area * most / 8);
  std::byte* unwritten = reserve(area * most / 8 + sizeof(std::uint64_t));
  std::mutex mutex;
  std::vector<std::size_t> free;

  Room() {
    for (std::size_t i = most; i > 0; --i) free.push_back(i - 1);
    all_ = stacks;
    offset_ = reinterpret_cast<std::uintptr_t>(shadow) - reinterpret_cast<std::uintptr_t>(stacks) / 8;
    unwritten_offset_ = reinterpret_cast<std::uintptr_t>(unwritten) - reinterpret_cast<std::uintptr_t>(stacks) / 8;
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
  const std::uintptr_t eighth = reinterpret_cast<std::uintptr_t>(begin_) / 8;
  madvise(reinterpret_cast<void*>(eighth + offset_), area / 8, MADV_DONTNEED);
  madvise(reinterpret_cast<void*>(eighth + unwritten_offset_), area / 8, MADV_DONTNEED);
}

void Stacks::set_unwritten(std::uintptr_t address, std::size_t bytes, bool unwritten) {
  for (std::size_t count; bytes > 0; address += count, bytes -= count) {
    count = std::min(bytes, part);
    void* const at = reinterpret_cast<void*>(address / 8 + unwritten_offset_);
    const std::uint64_t mask = mask_of(count) << address % 8;
    std::uint64_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    bits = unwritten ? bits | mask : bits & ~mask;
    std::memcpy(at, &bits, sizeof(bits));
  }
}

void Stacks::copy_unwritten(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) {
  if (!any_unwritten(from, bytes)) return set_unwritten(to, bytes, false);
  for (std::size_t i = 0; i < bytes; ++i) set_unwritten(to + i, 1, any_unwritten(from + i, 1));
}

}  // namespace russet::simulator
