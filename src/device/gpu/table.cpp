#include "device/gpu/table.h"

#include <algorithm>
#include <iterator>

namespace russet::gpu {
namespace {

std::size_t rounded(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Table::Table(Codes codes, std::uint32_t bases) : codes_(std::move(codes)), bases_(bases) {
  std::size_t places = 1;
  std::size_t value_bytes = 0;
  for (const auto& [name, code] : codes_) {
    places = std::max(places, code.piece->arguments.size());
    value_bytes = std::max(value_bytes, code.value_bytes);
    threads_ = std::max(threads_, code.piece->threads);
  }
  value_at_ = places * 8;
  directory_ = value_at_ + std::max<std::size_t>(rounded(value_bytes, 8), 8);
  bytes_ = rounded(directory_ + directory_bytes, 8);
}

std::uint32_t Table::number_of(const std::string& name) const {
  return static_cast<std::uint32_t>(std::distance(codes_.begin(), codes_.find(name)));
}

const std::string& Table::name_of(std::uint32_t number) const { return std::next(codes_.begin(), number)->first; }

std::vector<Piece> Table::pieces() const {
  std::vector<Piece> pieces;
  for (const auto& [name, code] : codes_) pieces.push_back(*code.piece);
  return pieces;
}

Source Table::source() const { return source_of(pieces(), (directory_ - value_at_) / 8, bytes_, bases_); }

std::vector<Piece::Array> Table::arrays() const { return shared_arrays(pieces()); }

}  // namespace russet::gpu
