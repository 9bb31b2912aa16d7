#pragma once
// A model of Apple's GPUs: what a step takes at least, by what Apple states of them. Nothing here was measured.
#include <russet/runtime.h>

#include <span>
#include <string_view>

namespace app {

struct Chip {
  std::string_view name;
  double gigabytes_a_second;
  double teraflops;  // float32
};

/// Memory bandwidth as Apple's press releases and technical specifications state it. Arithmetic likewise for M1 (2.6),
/// M1 Pro (5.2), M1 Ultra (21) and M2 (3.6); for M3 Max (40 cores) and M4 (10 cores) it is 128 multiply-adds a core and
/// clock at 1.4 and 1.5 GHz, as Apple states none.
inline constexpr Chip chips[] = {
    {"m1", 68.25, 2.6}, {"m1-pro", 200, 5.2},  {"m1-ultra", 800, 21},
    {"m2", 100, 3.6},   {"m3-max", 400, 14.3}, {"m4", 120, 3.8},
};

/// What it costs to launch a kernel, at the least: an assumption.
inline constexpr double launch_microseconds = 2;

/// The chip of a name. Throws ValueError that lists the names.
const Chip& chip_of(std::string_view name);

/// The lower bound that the model gives for a step: its bytes at full bandwidth or its operations at full speed,
/// whichever takes longer, and its launches.
double modelled_microseconds(const russet::StepInfo& step, const Chip& chip);

}  // namespace app
