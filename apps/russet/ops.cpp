// russet ops: the operator table, and per device what runs natively.
#include <russet/operators.h>
#include <russet/runtime.h>

#include <algorithm>

#include "command.h"

namespace russet::app {
namespace {

std::vector<Device> asked_devices(const Arguments& arguments) {
  if (arguments.has("device")) return {require_device(arguments.text("device"))};
  std::vector<Device> devices;
  for (const DeviceInfo& info : russet::devices()) {
    if (info.available && info.device.type != DeviceType::null) devices.push_back(info.device);
  }
  return devices;
}

std::vector<std::string> names_of(const std::vector<DType>& types) {
  std::vector<std::string> names;
  names.reserve(types.size());
  for (const DType type : types) names.emplace_back(name_of(type));
  return names;
}

Json to_json(const OperatorInfo& info, const std::vector<Device>& devices) {
  Json line{{"name", info.name},        {"family", info.family},     {"inputs", info.inputs},
            {"types", info.types},      {"autocast", info.autocast}, {"documentation", info.documentation},
            {"devices", Json::object()}};
  for (const Device device : devices) {
    const OperatorSupport support = operator_support(info.name, device);
    line["devices"][to_string(device)] = {
        {"native", !support.native.empty()}, {"types", names_of(support.native)}, {"kernel", support.kernel}};
  }
  return line;
}

void print_row(const OperatorInfo& info, const std::vector<Device>& devices) {
  fmt::print("{:<20} {:<12}", info.name, info.family);
  for (const Device device : devices) {
    fmt::print(" {:<10}", operator_support(info.name, device).native.empty() ? "fallback" : "native");
  }
  fmt::print(" {}\n", info.documentation);
}

void print_one(const OperatorInfo& info, const std::vector<Device>& devices) {
  fmt::print("{}: {}\n  family    {}, {} input(s)\n  types     {}\n  autocast  {}\n", info.name, info.documentation,
             info.family, info.inputs, info.types, info.autocast);
  for (const Device device : devices) {
    const OperatorSupport support = operator_support(info.name, device);
    if (support.native.empty()) {
      fmt::print("  {:<9} falls back to the CPU: {}\n", to_string(device), support.reason);
    } else {
      fmt::print("  {:<9} {} ({})\n", to_string(device), join(names_of(support.native), " "), support.kernel);
    }
  }
}

}  // namespace

void run_ops(const Arguments& arguments) {
  const std::vector<Device> devices = asked_devices(arguments);
  const std::string wanted = arguments.text("op");
  const bool json = arguments.flag("json");
  std::vector<OperatorInfo> table = operators();
  if (!wanted.empty()) {
    std::vector<std::string> names;
    names.reserve(table.size());
    for (const auto& info : table) names.push_back(info.name);
    std::erase_if(table, [&](const auto& info) { return info.name != wanted; });
    if (table.empty()) throw ValueError(fmt::format("there is no operator \"{}\" among {}", wanted, join(names)));
  } else if (!json) {
    fmt::print("{:<20} {:<12}", "operator", "family");
    for (const Device device : devices) fmt::print(" {:<10}", to_string(device));
    fmt::print(" what it is\n");
  }
  for (const OperatorInfo& info : table) {
    if (json) {
      print_json(to_json(info, devices));
    } else if (wanted.empty()) {
      print_row(info, devices);
    } else {
      print_one(info, devices);
    }
  }
}

}  // namespace russet::app
