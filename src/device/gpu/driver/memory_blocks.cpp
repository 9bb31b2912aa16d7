#include "device/gpu/driver/memory_blocks.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>

#include "runtime/device.h"

namespace russet::gpu {
namespace {

using runtime::page;

constexpr std::size_t line = 64;
constexpr std::size_t small_block = std::size_t{4} << 20;
constexpr std::size_t least_large_block = std::size_t{64} << 20;

std::size_t rounded(std::size_t bytes, std::size_t unit) { return std::max(unit, (bytes + unit - 1) / unit * unit); }

std::size_t unit_of(std::size_t bytes) { return bytes > page ? page : line; }

/// The block that holds [address, address + bytes), or end().
template <class Cuts>
auto holder_in(Cuts& cuts, const std::byte* address, std::size_t bytes) {
  const auto after = cuts.upper_bound(address);
  if (after == cuts.begin()) return cuts.end();
  const Block& block = *std::prev(after)->second.block;
  const bool holds = static_cast<std::size_t>(address - block.begin()) + bytes <= block.bytes();
  return holds ? std::prev(after) : cuts.end();
}

}  // namespace

MemoryBlocks::MemoryBlocks(BlockSource& source, std::string device) : source_(source), device_(std::move(device)) {
  spare_ = allocate(line);
}

std::byte* MemoryBlocks::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > source_.limit()) throw_out_of_memory(bytes);
  const std::size_t unit = unit_of(bytes);
  const std::size_t block_bytes = unit == line ? small_block : large_block();
  if (bytes <= block_bytes / 2) return cut(rounded(bytes, unit), unit, block_bytes);
  return make_block(rounded(bytes, page)).block->begin();
}

void MemoryBlocks::release(std::byte* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = holder_in(cuts_, memory, bytes);
  if (found == cuts_.end()) throw InternalError(device_ + ": memory is given back that was never granted");
  Cut& cut = found->second;
  if (cut.unit == 0) return drop(found);
  const auto offset = static_cast<std::size_t>(memory - cut.block->begin());
  cut.free.add({offset, offset + rounded(bytes, cut.unit)});
  if (cut.free.covers({0, cut.block->bytes()})) drop(found);
}

bool MemoryBlocks::borrow(std::byte* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto known = cuts_.find(memory);
  if (known != cuts_.end()) {
    ++known->second.borrowers;
    return true;
  }
  const std::size_t whole = rounded(bytes, page);
  const bool whole_pages = reinterpret_cast<std::uintptr_t>(memory) % page == 0 && bytes > page;
  if (!whole_pages || granted_ + whole > source_.limit()) return false;
  std::unique_ptr<Block> block = source_.borrow(memory, whole);
  if (!block) return false;
  add(std::move(block)).borrowers = 1;
  return true;
}

void MemoryBlocks::end_borrowing(const std::byte* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = cuts_.find(memory);
  if (found == cuts_.end()) throw InternalError(device_ + ": memory is given back that was never borrowed");
  if (--found->second.borrowers == 0) drop(found);
}

const Block& MemoryBlocks::find(const std::byte* address, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto found = holder_in(cuts_, address, bytes);
  if (found == cuts_.end()) throw InternalError(device_ + ": a kernel is given memory that is not the GPU's");
  return *found->second.block;
}

std::size_t MemoryBlocks::large_block() const {
  const std::size_t wanted = std::max(least_large_block, granted_ / 8);
  const std::size_t left = source_.limit() > granted_ ? source_.limit() - granted_ : 0;
  return std::min({wanted, left, source_.most_of_cut_block()}) / page * page;
}

// First fit: blocks are few, and the pool above asks for each size once.
std::byte* MemoryBlocks::cut(std::size_t bytes, std::size_t unit, std::size_t block_bytes) {
  const auto take = [&](Cut& cut) -> std::byte* {
    const auto fits = [&](const base::ByteRange& gap) { return gap.bytes() >= bytes; };
    const auto gap = std::find_if(cut.free.begin(), cut.free.end(), fits);
    if (gap == cut.free.end()) return nullptr;
    const std::size_t offset = gap->begin;
    cut.free.remove({offset, offset + bytes});
    return cut.block->begin() + offset;
  };
  for (auto& [begin, cut] : cuts_) {
    if (cut.unit != unit) continue;
    if (std::byte* const piece = take(cut)) return piece;
  }
  Cut& fresh = make_block(std::min(block_bytes, std::max(bytes, source_.most_of_cut_block())));
  fresh.unit = unit;
  fresh.free.add({0, fresh.block->bytes()});
  return take(fresh);
}

MemoryBlocks::Cut& MemoryBlocks::make_block(std::size_t bytes) {
  if (granted_ + bytes > source_.limit()) throw_out_of_memory(bytes);
  std::unique_ptr<Block> block = source_.grant(bytes);
  if (!block) throw_out_of_memory(bytes);
  return add(std::move(block));
}

MemoryBlocks::Cut& MemoryBlocks::add(std::unique_ptr<Block> block) {
  granted_ += block->bytes();
  Cut& cut = cuts_[block->begin()];
  cut.block = std::move(block);
  return cut;
}

void MemoryBlocks::drop(Cuts::iterator cut) {
  granted_ -= cut->second.block->bytes();
  cuts_.erase(cut);
}

void MemoryBlocks::throw_out_of_memory(std::size_t bytes) const {
  throw OutOfMemoryError(
      fmt::format("{}: {} bytes are needed, {} are in use, and the GPU grants {} ({}). Use a "
                  "smaller batch?",
                  device_, bytes, granted_, source_.limit(), source_.limit_name()));
}

}  // namespace russet::gpu
