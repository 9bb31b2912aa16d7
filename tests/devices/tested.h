#pragma once
// Which devices the conformance tests run on: cpu, or those that the environment variable RUSSET_TEST_DEVICES names,
// separated by commas. Each is held against the reference device, in the types that it has.
#include <russet/runtime.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace russet::conformance {

inline std::vector<std::string> tested_devices() {
  const char* named = std::getenv("RUSSET_TEST_DEVICES");
  std::istringstream stream(named && *named ? named : "cpu");
  std::vector<std::string> names;
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  return names;
}

/// Whether what runs there is compiled first, which takes longer than running it on what tests are made of.
inline bool compiles_kernels(const std::string& device) { return device == "mps" || device.starts_with("cuda"); }

/// Whether its contractions do what comes before and after them, too. NVIDIA's libraries, which `cuda` prefers, do not.
inline bool fuses_contractions(const std::string& device) { return device == "mps"; }

inline bool has_type(Device device, DType dtype) {
  for (const DeviceInfo& info : devices()) {
    if (info.device == device) return std::find(info.dtypes.begin(), info.dtypes.end(), dtype) != info.dtypes.end();
  }
  return false;
}

}  // namespace russet::conformance
