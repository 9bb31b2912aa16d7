#pragma once
// MemoryBlocks: blocks of a GPU's memory, cut into pieces, and which of them an address lies in.
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/range_set.h"

namespace russet::gpu {

/// A range of addresses that a GPU's interface grants as one; given back when it is destroyed.
class Block {
 public:
  Block(std::byte* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }
  /// What a launch binds to reach these bytes of the block. Equal pointers: the same.
  virtual const void* binding_of(const std::byte* /*address*/, std::size_t /*bytes*/) const { return this; }

 private:
  std::byte* begin_;
  std::size_t bytes_;
};

/// Where blocks come from.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  /// Its words, where memory is refused: "Metal's recommended working set".
  virtual std::string limit_name() const = 0;
  /// Bytes of all blocks together.
  virtual std::size_t limit() const = 0;
  /// Bytes of a block that pieces are cut of, at most.
  virtual std::size_t most_of_cut_block() const = 0;
  /// A block of whole pages. nullptr where there is none left.
  virtual std::unique_ptr<Block> grant(std::size_t bytes) = 0;
  /// Whole pages of the CPU's memory as a block. nullptr where that cannot be.
  virtual std::unique_ptr<Block> borrow(std::byte* /*memory*/, std::size_t /*bytes*/) { return nullptr; }
};

/// Pieces up to a page come from blocks of 4 MiB, larger ones from blocks of 64 MiB or of an eighth of all that there
/// is, if that is more: a launch over many tensors binds blocks, so they must be few. Pieces above half a block have
/// a block of their own. Thread-safe.
class MemoryBlocks {
 public:
  /// `device`: its name in messages.
  MemoryBlocks(BlockSource& source, std::string device);

  /// 64-byte aligned, page-aligned above a page. Throws OutOfMemoryError.
  std::byte* allocate(std::size_t bytes);
  void release(std::byte* memory, std::size_t bytes);
  /// Makes whole pages of CPU memory a block until end_borrowing() has been called as often as this. False if they are
  /// not whole pages, or more than the GPU takes.
  bool borrow(std::byte* memory, std::size_t bytes);
  void end_borrowing(const std::byte* memory);
  /// The block that holds [address, address + bytes). Throws InternalError if that is not memory of this device.
  const Block& find(const std::byte* address, std::size_t bytes) const;
  /// An arbitrary valid address, to bind for an empty buffer.
  const std::byte* anywhere() const { return spare_; }

 private:
  struct Cut {
    std::unique_ptr<Block> block;
    base::RangeSet free;   // offsets, where pieces are cut
    std::size_t unit = 0;  // of which pieces are multiples; 0: one piece
    int borrowers = 0;     // of memory that is the CPU's
  };
  using Cuts = std::map<const std::byte*, Cut>;

  std::byte* cut(std::size_t bytes, std::size_t unit, std::size_t block_bytes);
  std::size_t large_block() const;
  Cut& add(std::unique_ptr<Block> block);
  Cut& make_block(std::size_t bytes);
  void drop(Cuts::iterator cut);
  [[noreturn]] void throw_out_of_memory(std::size_t bytes) const;

  BlockSource& source_;
  std::string device_;
  mutable std::mutex mutex_;
  Cuts cuts_;                // by address
  std::size_t granted_ = 0;  // bytes of all blocks
  const std::byte* spare_ = nullptr;
};

}  // namespace russet::gpu
