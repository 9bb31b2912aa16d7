#pragma once
// The IDX format of MNIST: two zero bytes, a type, a rank, big-endian sizes, big-endian elements; plain or gzipped.
// http://yann.lecun.com/exdb/mnist
#include <russet/dtype.h>
#include <russet/shape.h>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace russet::io {

struct IdxArray {
  DType dtype = DType::uint8;
  Shape shape;
  std::vector<std::byte> bytes;  // row-major, in the machine's byte order
};

/// Parses a file in memory, gzipped or not. Memory is taken for what the header says, once the input's length shows
/// that it can hold that much, and never above `limit` bytes. Throws FileError.
IdxArray parse_idx(std::span<const std::byte> file, std::string_view name,
                   std::uint64_t limit = std::uint64_t{4} << 30);
IdxArray read_idx(const std::filesystem::path& path);

}  // namespace russet::io
