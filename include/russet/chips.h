#pragma once
// A model of Apple's and NVIDIA's GPUs: what work takes at least, by what their makers state of them. Nothing here was
// measured.
#include <russet/device.h>
#include <russet/dtype.h>
#include <optional>
#include <span>
#include <string_view>

namespace russet {

struct Chip {
  std::string_view name;  // "m1-pro"
  int cores = 0;          // of its GPU
  double gigabytes_a_second = 0;
  double teraflops = 0;       // float32
  std::string_view family;    // of GPUs: "apple7", as Metal counts them, or "sm_90", as CUDA does
  double half_teraflops = 0;  // of contractions in float16 and bfloat16 by tensor cores; 0 where there are none
};

/// Those of a device, mps or cuda, that there is a model of. The first is what is planned for where none is named; of
/// Apple's it is the slowest.
std::span<const Chip> chips(DeviceType device = DeviceType::mps);

/// The chip of a name. Throws ValueError that lists the names.
const Chip& chip_of(std::string_view name, DeviceType device = DeviceType::mps);

/// The chip of a GPU that Metal calls so ("Apple M1 Pro"). One that came later is taken for the fastest known chip of
/// its suffix ("Apple M9 Max" for an M5 Max), any other GPU for the slowest.
const Chip& chip_of_gpu(std::string_view gpu);

/// The lower bound that the model gives for work, in seconds: its bytes at full bandwidth or its floating-point
/// operations at full speed, whichever takes longer. `factors`: what a contraction multiplies.
double modelled_seconds(double bytes, double operations, const Chip& chip, std::optional<DType> factors = {});

}  // namespace russet
