#include "process.h"

#include <fstream>
#include <string>

namespace russet::app {
namespace {

/// A line of /proc/self/status such as "VmHWM:   1234 kB", in bytes.
std::optional<std::size_t> status_of(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
  }
  return std::nullopt;
}

}  // namespace

ResidentPeak::ResidentPeak() {
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts anew
  before_ = status_of("VmHWM");
}

std::optional<std::size_t> ResidentPeak::growth() const {
  const std::optional<std::size_t> now = status_of("VmHWM");
  if (!now || !before_) return std::nullopt;
  return *now - *before_;
}

}  // namespace russet::app
