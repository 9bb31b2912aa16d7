#pragma once
// Where a tensor lives.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace russet {

enum class DeviceType : std::uint8_t { cpu, mps, cuda, reference, null };
inline constexpr std::size_t device_types = 5;

struct Device {
  DeviceType type = DeviceType::cpu;
  std::uint8_t index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceType type, std::uint8_t index = 0) : type(type), index(index) {}
  /// "cpu", "mps", "cuda", "cuda:1", "reference", "null". Throws DeviceError for anything else.
  explicit Device(std::string_view name);
  constexpr bool operator==(const Device&) const = default;
};

std::string to_string(Device device);

}  // namespace russet
