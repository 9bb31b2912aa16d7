#pragma once
// A model of Apple's GPUs: what work takes at least, by what Apple states of them. Nothing here was measured.
#include <span>
#include <string_view>

namespace russet {

struct Chip {
  std::string_view name;  // "m1-pro"
  int cores = 0;          // of its GPU
  double gigabytes_a_second = 0;
  double teraflops = 0;     // float32
  std::string_view family;  // of GPUs, as Metal counts them: "apple7"
};

/// Those that there is a model of; the first is the slowest.
std::span<const Chip> chips();

/// The chip of a name. Throws ValueError that lists the names.
const Chip& chip_of(std::string_view name);

/// The chip of a GPU that Metal calls so ("Apple M1 Pro"). One that came later is taken for the fastest known chip of
/// its suffix ("Apple M9 Max" for an M5 Max), any other GPU for the slowest.
const Chip& chip_of_gpu(std::string_view gpu);

/// The lower bound that the model gives for work, in seconds: its bytes at full bandwidth or its floating-point
/// operations at full speed, whichever takes longer.
double modelled_seconds(double bytes, double operations, const Chip& chip);

}  // namespace russet
