#include "command.h"

#include <russet/models.h>
#include <russet/runtime.h>

#include <cstdio>

namespace app {

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

russet::Device require_device(const std::string& name) {
  const russet::Device device(name);
  std::vector<std::string> available;
  for (const russet::DeviceInfo& info : russet::devices()) {
    if (info.device.type == device.type && info.available) return device;
    if (info.available) available.push_back(to_string(info.device));
  }
  for (const russet::DeviceInfo& info : russet::devices()) {
    if (info.device.type != device.type) continue;
    throw russet::DeviceError(
        fmt::format("the device {} is not available: {}. There is {}.", name, info.reason, join(available)));
  }
  return device;
}

russet::DType precision_type(const std::string& word) {
  if (word == "fp32") return russet::DType::float32;
  if (word == "bf16") return russet::DType::bfloat16;
  throw russet::ValueError(fmt::format("--precision {}: the choices are fp32, bf16", word));
}

CLI::Option* add_device_option(CLI::App& command, std::string& device) {
  return command.add_option("--device", device, "The device (russet devices lists them)")->capture_default_str();
}

CLI::Option* add_precision_option(CLI::App& command, std::string& precision) {
  return command.add_option("--precision", precision, "fp32, or bf16: matrix work in bfloat16")->capture_default_str();
}

CLI::Option* add_model_option(CLI::App& command, std::string& model) {
  return command.add_option("MODEL", model, "One of " + join(russet::models::list_models()))->required();
}

}  // namespace app
