#pragma once
// Lines of text files.
#include <algorithm>
#include <cstddef>
#include <string_view>

namespace russet::text {

/// Calls `use(line, number)` for each line, without its end (LF, or CR and LF); the first is number 1.
template <class Use>
void for_each_line(std::string_view text, const Use& use) {
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    if (line.ends_with('\r')) line.remove_suffix(1);
    use(line, ++number);
    text.remove_prefix(std::min(length + 1, text.size()));
  }
}

}  // namespace russet::text
