#include <fmt/format.h>
#include <russet/error.h>
#include <russet/io/file.h>
#include <russet/io/idx.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>

#include "io/deflate.h"

namespace russet::io {
namespace {

/// zlib counts in 32 bits.
constexpr std::size_t max_step = std::size_t{1} << 30;

/// A file's content, inflated on the way if it is gzipped.
class Source {
 public:
  virtual ~Source() = default;
  /// Reads up to target.size() bytes; fewer only at the end.
  virtual std::size_t read(std::span<std::byte> target) = 0;
  /// An upper bound for the length of the content.
  virtual std::uint64_t capacity() const = 0;
};

class PlainSource final : public Source {
 public:
  explicit PlainSource(std::span<const std::byte> file) : rest_(file), capacity_(file.size()) {}
  std::size_t read(std::span<std::byte> target) override {
    const std::size_t count = std::min(target.size(), rest_.size());
    std::copy_n(rest_.begin(), count, target.begin());
    rest_ = rest_.subspan(count);
    return count;
  }
  std::uint64_t capacity() const override { return capacity_; }

 private:
  std::span<const std::byte> rest_;
  std::uint64_t capacity_;
};

class GzipSource final : public Source {
 public:
  GzipSource(std::span<const std::byte> file, std::string_view name)
      : name_(name), rest_(file), capacity_(file.size() * static_cast<std::uint64_t>(max_inflation)) {
    constexpr int gzip_only = 15 + 16;
    if (inflateInit2(&stream_, gzip_only) != Z_OK) throw OutOfMemoryError("idx: no memory for zlib");
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::size_t read(std::span<std::byte> target) override {
    std::size_t done = 0;
    while (done < target.size() && !ended_) done += step(target.subspan(done));
    return done;
  }
  std::uint64_t capacity() const override { return capacity_; }

 private:
  std::size_t step(std::span<std::byte> target) {
    const std::size_t input = std::min(rest_.size(), max_step);
    const std::size_t output = std::min(target.size(), max_step);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest_.data()));
    stream_.avail_in = static_cast<uInt>(input);
    stream_.next_out = reinterpret_cast<Bytef*>(target.data());
    stream_.avail_out = static_cast<uInt>(output);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    rest_ = rest_.subspan(input - stream_.avail_in);
    if (status == Z_STREAM_END) {
      ended_ = true;
      if (!rest_.empty()) throw FileError(fmt::format("{}: {} bytes follow the gzip stream", name_, rest_.size()));
    } else if (status == Z_BUF_ERROR || (status == Z_OK && rest_.empty() && stream_.avail_out > 0)) {
      throw FileError(fmt::format("{}: the gzip stream is truncated", name_));
    } else if (status != Z_OK) {
      throw FileError(fmt::format("{}: the gzip stream is damaged: {}", name_,
                                  stream_.msg != nullptr ? stream_.msg : "unknown reason"));
    }
    return output - stream_.avail_out;
  }

  std::string_view name_;
  std::span<const std::byte> rest_;
  std::uint64_t capacity_;
  z_stream stream_{};
  bool ended_ = false;
};

std::optional<DType> type_of(unsigned code) {
  switch (code) {
    case 0x08: return DType::uint8;
    case 0x09: return DType::int8;
    case 0x0B: return DType::int16;
    case 0x0C: return DType::int32;
    case 0x0D: return DType::float32;
    case 0x0E: return DType::float64;
    default: return std::nullopt;
  }
}

void read_exactly(Source& source, std::span<std::byte> target, std::string_view name, std::string_view what) {
  const std::size_t count = source.read(target);
  if (count != target.size()) {
    throw FileError(fmt::format("{}: it is truncated: {} of {} bytes of the {}", name, count, target.size(), what));
  }
}

Shape read_sizes(Source& source, unsigned rank, std::string_view name) {
  if (rank == 0 || rank > static_cast<unsigned>(max_rank)) {
    throw FileError(fmt::format("{}: no IDX file, or a damaged one: it says that it has {} axes", name, rank));
  }
  Shape shape;
  for (unsigned axis = 0; axis < rank; ++axis) {
    std::array<std::byte, 4> bytes{};
    read_exactly(source, bytes, name, "header");
    std::int64_t size = 0;
    for (const std::byte byte : bytes) size = size << 8 | std::to_integer<std::int64_t>(byte);
    shape.push_back(size);
  }
  return shape;
}

/// The bytes of the elements. Throws where the input cannot hold them or the limit forbids them.
std::uint64_t checked_bytes(const Shape& shape, DType dtype, const Source& source, std::uint64_t limit,
                            std::string_view name) {
  std::uint64_t count = size_of(dtype);
  bool fits = true;
  bool none = false;
  for (const std::int64_t size : shape) {
    none |= size == 0;
    fits &= size == 0 || !__builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count);
  }
  // Strides multiply the other sizes even where one is 0.
  if (none && fits && count <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return 0;
  if (!fits || count > source.capacity()) {
    throw FileError(fmt::format("{}: it is truncated or damaged: its header says {} elements of {}, more than it holds",
                                name, to_string(shape), name_of(dtype)));
  }
  if (count > limit) {
    throw FileError(fmt::format("{}: its {} bytes are more than the {} that are read", name, count, limit));
  }
  return count;
}

void to_native_order(std::span<std::byte> bytes, std::size_t element) {
  if constexpr (std::endian::native == std::endian::big) return;
  for (std::size_t i = 0; i < bytes.size(); i += element) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + element));
  }
}

IdxArray parse(Source& source, std::string_view name, std::uint64_t limit) {
  std::array<std::byte, 4> magic{};
  read_exactly(source, magic, name, "header");
  const std::optional<DType> dtype = type_of(std::to_integer<unsigned>(magic[2]));
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || !dtype) {
    throw FileError(fmt::format("{}: it is no IDX file: it begins with {:02x} {:02x} {:02x}", name,
                                std::to_integer<unsigned>(magic[0]), std::to_integer<unsigned>(magic[1]),
                                std::to_integer<unsigned>(magic[2])));
  }
  IdxArray array;
  array.dtype = *dtype;
  array.shape = read_sizes(source, std::to_integer<unsigned>(magic[3]), name);
  array.bytes.resize(checked_bytes(array.shape, array.dtype, source, limit, name));
  read_exactly(source, array.bytes, name, "elements");
  std::byte extra{};
  if (source.read({&extra, 1}) != 0) throw FileError(fmt::format("{}: bytes follow the last element", name));
  if (size_of(array.dtype) > 1) to_native_order(array.bytes, size_of(array.dtype));
  return array;
}

}  // namespace

IdxArray parse_idx(std::span<const std::byte> file, std::string_view name, std::uint64_t limit) {
  const bool gzipped = file.size() >= 2 && file[0] == std::byte{0x1F} && file[1] == std::byte{0x8B};
  if (gzipped) {
    GzipSource source(file, name);
    return parse(source, name, limit);
  }
  PlainSource source(file);
  return parse(source, name, limit);
}

IdxArray read_idx(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_idx(file.bytes(), path.string());
}

}  // namespace russet::io
