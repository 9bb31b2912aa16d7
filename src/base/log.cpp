#include "base/log.h"

#include <cstdio>
#include <cstdlib>

namespace russet::base {

bool log_enabled(std::string_view channel) {
  const char* setting = std::getenv("RUSSET_LOG");
  std::string_view rest = setting == nullptr ? "" : setting;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view name = rest.substr(0, comma);
    if (name == channel || name == "all") return true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return false;
}

void log_line(std::string_view channel, std::string_view text) {
  // One write, so that lines of several threads do not mix.
  const std::string line = fmt::format("russet {}: {}\n", channel, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace russet::base
