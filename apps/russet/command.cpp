#include "command.h"

#include <russet/runtime.h>

#include <cstdio>

namespace russet::app {

void print_json(const Json& value) {
  fmt::print("{}\n", value.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::fflush(stdout);
}

std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

Device require_device(const std::string& name) {
  const Device device(name);
  std::vector<std::string> available;
  for (const DeviceInfo& info : devices()) {
    if (info.device.type == device.type && info.available) return device;
    if (info.available) available.push_back(to_string(info.device));
  }
  for (const DeviceInfo& info : devices()) {
    if (info.device.type != device.type) continue;
    throw DeviceError(
        fmt::format("the device {} is not available: {}. There is {}.", name, info.reason, join(available)));
  }
  return device;
}

}  // namespace russet::app
