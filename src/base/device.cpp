#include <fmt/format.h>
#include <russet/device.h>
#include <russet/error.h>
#include <charconv>

namespace russet {
namespace {

constexpr std::string_view device_names[device_types] = {"cpu", "mps", "cuda", "reference", "null"};

[[noreturn]] void throw_unknown(std::string_view name) {
  throw DeviceError(fmt::format("there is no device '{}'; the names are {}, with an index as in cuda:1", name,
                                fmt::join(device_names, ", ")));
}

}  // namespace

Device::Device(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  std::size_t position = 0;
  while (position < device_types && device_names[position] != kind) ++position;
  if (position == device_types) throw_unknown(name);
  type = static_cast<DeviceType>(position);
  if (colon == std::string_view::npos) return;
  const std::string_view digits = name.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc{} || end != digits.data() + digits.size()) throw_unknown(name);
}

std::string to_string(Device device) {
  const std::string_view name = device_names[static_cast<int>(device.type)];
  return device.index == 0 ? std::string(name) : fmt::format("{}:{}", name, device.index);
}

}  // namespace russet
