#include <fmt/format.h>
#include <russet/chips.h>
#include <russet/error.h>

#include <algorithm>
#include <string>

namespace russet {
namespace {

/// Cores and memory bandwidth as Apple's press releases and technical specifications state them, of the largest GPU
/// that the chip is sold with; families by Apple's Metal feature set tables. Arithmetic: Apple states it of M1 (2.6),
/// M1 Pro (5.2), M1 Max (10.4), M1 Ultra (21) and M2 (3.6). Of the others it is 128 multiply-adds a core and clock, at
/// the clocks that owners have read: 1.4 GHz for M2 and M3, 1.47 for M4, 1.58 for M4 Pro, M4 Max and M5. There is no M4
/// Ultra, and Apple has not stated what an M5 Ultra has.
constexpr Chip apples[] = {
    // name, cores, GB/s, teraflops, family
    {"m1", 8, 68.25, 2.6, "apple7"},     {"m1-pro", 16, 200, 5.2, "apple7"},    {"m1-max", 32, 400, 10.4, "apple7"},
    {"m1-ultra", 64, 800, 21, "apple7"}, {"m2", 10, 100, 3.6, "apple8"},        {"m2-pro", 19, 200, 6.8, "apple8"},
    {"m2-max", 38, 400, 13.6, "apple8"}, {"m2-ultra", 76, 800, 27.2, "apple8"}, {"m3", 10, 100, 3.6, "apple9"},
    {"m3-pro", 18, 150, 6.5, "apple9"},  {"m3-max", 40, 400, 14.3, "apple9"},   {"m3-ultra", 80, 819, 28.7, "apple9"},
    {"m4", 10, 120, 3.8, "apple9"},      {"m4-pro", 20, 273, 8.1, "apple9"},    {"m4-max", 40, 546, 16.2, "apple9"},
    {"m5", 10, 153, 4, "apple10"},       {"m5-pro", 20, 307, 8.1, "apple10"},   {"m5-max", 40, 614, 16.2, "apple10"},
};

/// Multiprocessors, memory bandwidth, float32 without tensor cores, and float16 by tensor cores with sums in float32
/// (matrices that are not sparse), as NVIDIA's data sheets state them: of cards for servers in their SXM form, of A100
/// with 80 GB.
constexpr Chip nvidias[] = {
    // name, multiprocessors, GB/s, teraflops, family, of float16
    {"h200", 132, 4800, 67, "sm_90", 989},       {"h100", 132, 3350, 67, "sm_90", 989},
    {"a100", 108, 2039, 19.5, "sm_80", 312},     {"l40s", 142, 864, 91.6, "sm_89", 362},
    {"rtx-4090", 128, 1008, 82.6, "sm_89", 165}, {"rtx-3090", 82, 936, 35.6, "sm_86", 71},
};

const Chip* find(std::string_view name, DeviceType device) {
  const std::span<const Chip> known = chips(device);
  const auto found = std::ranges::find(known, name, &Chip::name);
  return found == known.end() ? nullptr : &*found;
}

/// "max" of "m4-max", "" of "m4".
std::string_view suffix_of(std::string_view name) {
  const std::size_t dash = name.find('-');
  return dash == std::string_view::npos ? "" : name.substr(dash + 1);
}

/// The fastest chip of a suffix, nullptr if there is none.
const Chip* largest(std::string_view suffix) {
  const Chip* best = nullptr;
  for (const Chip& chip : apples) {
    if (suffix_of(chip.name) == suffix && (best == nullptr || chip.teraflops >= best->teraflops)) best = &chip;
  }
  return best;
}

/// "m4-max" of "Apple M4 Max", whatever Metal calls a GPU.
std::string name_of(std::string_view gpu) {
  constexpr std::string_view maker = "Apple ";
  if (gpu.starts_with(maker)) gpu.remove_prefix(maker.size());
  std::string name;
  for (const char c : gpu) name += c == ' ' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

}  // namespace

std::span<const Chip> chips(DeviceType device) {
  if (device == DeviceType::mps) return apples;
  if (device == DeviceType::cuda) return nvidias;
  return {};
}

const Chip& chip_of(std::string_view name, DeviceType device) {
  if (const Chip* const chip = find(name, device)) return *chip;
  std::string names;
  for (const Chip& chip : chips(device)) names += fmt::format("{}{}", names.empty() ? "" : ", ", chip.name);
  throw ValueError(fmt::format("there is no model of the chip \"{}\" for {}; there is of {}", name,
                               to_string(Device(device)), names));
}

const Chip& chip_of_gpu(std::string_view gpu) {
  const std::string name = name_of(gpu);
  if (const Chip* const chip = find(name, DeviceType::mps)) return *chip;
  const bool numbered = name.size() > 1 && name[0] == 'm' && name[1] >= '0' && name[1] <= '9';
  const Chip* const chip = numbered ? largest(suffix_of(name)) : nullptr;
  return chip != nullptr ? *chip : apples[0];
}

double modelled_seconds(double bytes, double operations, const Chip& chip, std::optional<DType> factors) {
  const bool by_tensor_cores = chip.half_teraflops > 0 && (factors == DType::float16 || factors == DType::bfloat16);
  const double teraflops = by_tensor_cores ? chip.half_teraflops : chip.teraflops;
  return std::max(bytes / (chip.gigabytes_a_second * 1e9), operations / (teraflops * 1e12));
}

}  // namespace russet
