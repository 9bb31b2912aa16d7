#pragma once
// Table: which pieces the members of a shared launch run, and how an entry of the launch's table is laid out.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/gpu/piece.h"

namespace russet::gpu {

class Table {
 public:
  struct Code {
    std::shared_ptr<const Piece> piece;
    std::size_t value_bytes = 0;
  };
  /// By the names of the pieces' functions, which hold a digest of the text: in an order that does not depend on that
  /// of the members, so that fewer kernels differ.
  using Codes = std::map<std::string, Code>;

  /// `bases`: how many blocks of memory the kernel reaches.
  Table(Codes codes, std::uint32_t bases);

  const Codes& codes() const { return codes_; }
  std::uint32_t bases() const { return bases_; }
  std::uint32_t threads() const { return threads_; }
  /// Where an entry has its piece's values, its directory (`first` and what follows it in Member_@), and its end; where
  /// the directory has the number of the piece, and its end.
  std::size_t value_at() const { return value_at_; }
  std::size_t directory() const { return directory_; }
  std::size_t bytes() const { return bytes_; }
  static constexpr std::size_t number_at = 2 * sizeof(std::uint32_t);
  static constexpr std::size_t directory_bytes = 5 * sizeof(std::uint32_t);
  /// The number of a piece in the kernel, and the name of the piece of a number.
  std::uint32_t number_of(const std::string& name) const;
  const std::string& name_of(std::uint32_t number) const;

  /// The kernel.
  Source source() const;
  /// Arrays that a threadgroup of the kernel has.
  std::vector<Piece::Array> arrays() const;

 private:
  std::vector<Piece> pieces() const;

  Codes codes_;
  std::uint32_t bases_;
  std::uint32_t threads_ = 0;
  std::size_t value_at_ = 0;
  std::size_t directory_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace russet::gpu
