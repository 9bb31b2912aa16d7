#include "chips.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <string>

namespace app {

const Chip& chip_of(std::string_view name) {
  std::string names;
  for (const Chip& chip : chips) {
    if (chip.name == name) return chip;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", chip.name);
  }
  throw russet::ValueError(fmt::format("there is no model of the chip \"{}\"; there is of {}", name, names));
}

double modelled_microseconds(const russet::StepInfo& step, const Chip& chip) {
  const double memory = static_cast<double>(step.bytes) / (chip.gigabytes_a_second * 1e3);
  const double arithmetic = step.operations / (chip.teraflops * 1e6);
  return std::max(memory, arithmetic) + launch_microseconds * step.launches;
}

}  // namespace app
