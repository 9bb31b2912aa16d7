#include "device/gpu/compilations.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace russet::gpu {

std::size_t compilations_at_once() {
  const char* const wish = std::getenv("RUSSET_COMPILATIONS");
  if (wish == nullptr) return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 8, 16);
  const std::string_view text = wish;
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count == 0) {
    throw ValueError(fmt::format("RUSSET_COMPILATIONS is a number of compilations, from 1 on, not '{}'", text));
  }
  return count;
}

}  // namespace russet::gpu
