#include <fmt/format.h>
#include <russet/chips.h>
#include <russet/error.h>

#include <algorithm>
#include <string>

namespace russet {
namespace {

/// Memory bandwidth as Apple's press releases and technical specifications state it. Arithmetic likewise for M1 (2.6),
/// M1 Pro (5.2), M1 Ultra (21) and M2 (3.6); for M3 Max (40 cores) and M4 (10 cores) it is 128 multiply-adds a core and
/// clock at 1.4 and 1.5 GHz, as Apple states none. Families by Apple's Metal feature set tables.
constexpr Chip known[] = {
    {"m1", 68.25, 2.6, "apple7"}, {"m1-pro", 200, 5.2, "apple7"},  {"m1-ultra", 800, 21, "apple7"},
    {"m2", 100, 3.6, "apple8"},   {"m3-max", 400, 14.3, "apple9"}, {"m4", 120, 3.8, "apple9"},
};

const Chip* find(std::string_view name) {
  const Chip* const found = std::ranges::find(known, name, &Chip::name);
  return found == std::end(known) ? nullptr : found;
}

}  // namespace

std::span<const Chip> chips() { return known; }

const Chip& chip_of(std::string_view name) {
  if (const Chip* const chip = find(name)) return *chip;
  std::string names;
  for (const Chip& chip : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", chip.name);
  throw ValueError(fmt::format("there is no model of the chip \"{}\"; there is of {}", name, names));
}

const Chip& chip_of_gpu(std::string_view gpu) {
  constexpr std::string_view maker = "Apple ";
  if (gpu.starts_with(maker)) gpu.remove_prefix(maker.size());
  std::string name;
  for (const char c : gpu) name += c == ' ' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const Chip* const chip = find(name);
  return chip != nullptr ? *chip : known[0];
}

double modelled_seconds(double bytes, double operations, const Chip& chip) {
  return std::max(bytes / (chip.gigabytes_a_second * 1e9), operations / (chip.teraflops * 1e12));
}

}  // namespace russet
