#pragma once
// A file's content.
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace russet::files {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

}  // namespace russet::files
