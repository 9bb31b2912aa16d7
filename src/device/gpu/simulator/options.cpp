#include <fmt/format.h>
#include <russet/error.h>
#include <cstdlib>

#include "machine.h"

namespace russet::simulator {
namespace {

void apply(SimulatorOptions& options, std::string_view word) {
  if (word.empty()) return;
  if (word == "unchecked") {
    options.checked = false;
  } else if (word == "flush_subnormals") {
    options.flush_subnormals = true;
  } else if (word == "small_groups") {
    options.max_threads = 256;
  } else if (word == "coarse") {
    options.coarse = true;
  } else {
    throw ValueError(fmt::format(
        "RUSSET_SIMULATOR: there is no word '{}' (unchecked, flush_subnormals, small_groups, coarse)", word));
  }
}

SimulatorOptions read_options() {
  SimulatorOptions options;
  const char* setting = std::getenv("RUSSET_SIMULATOR");
  std::string_view rest = setting == nullptr ? "" : setting;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    apply(options, rest.substr(0, comma));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return options;
}

}  // namespace

const SimulatorOptions& options() {
  static const SimulatorOptions read = read_options();
  return read;
}

}  // namespace russet::simulator
