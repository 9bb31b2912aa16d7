// russet ops: the operator table, and per device what runs natively.
#include <russet/operators.h>
#include <russet/runtime.h>

#include <algorithm>
#include <memory>

#include "command.h"

namespace app {
namespace {

struct Arguments {
  std::string op;
  std::string device;
  bool json = false;
};

std::vector<russet::Device> devices_of(const Arguments& arguments) {
  if (!arguments.device.empty()) return {require_device(arguments.device)};
  std::vector<russet::Device> devices;
  for (const russet::DeviceInfo& info : russet::devices()) {
    if (info.available && info.device.type != russet::DeviceType::null) devices.push_back(info.device);
  }
  return devices;
}

std::vector<std::string> names_of(const std::vector<russet::DType>& types) {
  std::vector<std::string> names;
  for (const russet::DType type : types) names.emplace_back(russet::name_of(type));
  return names;
}

Json to_json(const russet::OperatorInfo& info, const std::vector<russet::Device>& devices) {
  Json line{{"name", info.name},        {"family", info.family},     {"inputs", info.inputs},
            {"types", info.types},      {"autocast", info.autocast}, {"documentation", info.documentation},
            {"devices", Json::object()}};
  for (const russet::Device device : devices) {
    const russet::OperatorSupport support = russet::operator_support(info.name, device);
    line["devices"][to_string(device)] = {
        {"native", !support.native.empty()}, {"types", names_of(support.native)}, {"kernel", support.kernel}};
  }
  return line;
}

void print_row(const russet::OperatorInfo& info, const std::vector<russet::Device>& devices) {
  fmt::print("{:<20} {:<12}", info.name, info.family);
  for (const russet::Device device : devices) {
    fmt::print(" {:<10}", russet::operator_support(info.name, device).native.empty() ? "fallback" : "native");
  }
  fmt::print(" {}\n", info.documentation);
}

void print_one(const russet::OperatorInfo& info, const std::vector<russet::Device>& devices) {
  fmt::print("{}: {}\n  family    {}, {} input(s)\n  types     {}\n  autocast  {}\n", info.name, info.documentation,
             info.family, info.inputs, info.types, info.autocast);
  for (const russet::Device device : devices) {
    const russet::OperatorSupport support = russet::operator_support(info.name, device);
    if (support.native.empty()) {
      fmt::print("  {:<9} falls back to the CPU: {}\n", to_string(device), support.reason);
    } else {
      fmt::print("  {:<9} {} ({})\n", to_string(device), join(names_of(support.native), " "), support.kernel);
    }
  }
}

void run(const Arguments& arguments) {
  const std::vector<russet::Device> devices = devices_of(arguments);
  std::vector<russet::OperatorInfo> operators = russet::operators();
  if (!arguments.op.empty()) {
    std::vector<std::string> names;
    for (const auto& info : operators) names.push_back(info.name);
    std::erase_if(operators, [&](const auto& info) { return info.name != arguments.op; });
    if (operators.empty()) {
      throw russet::ValueError(fmt::format("there is no operator \"{}\" among {}", arguments.op, join(names)));
    }
  } else if (!arguments.json) {
    fmt::print("{:<20} {:<12}", "operator", "family");
    for (const russet::Device device : devices) fmt::print(" {:<10}", to_string(device));
    fmt::print(" what it is\n");
  }
  for (const russet::OperatorInfo& info : operators) {
    if (arguments.json) {
      print_json(to_json(info, devices));
    } else if (arguments.op.empty()) {
      print_row(info, devices);
    } else {
      print_one(info, devices);
    }
  }
}

}  // namespace

void add_ops(CLI::App& program) {
  CLI::App* command = program.add_subcommand("ops", "The operator table, and what runs natively where");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("OP", arguments->op, "One operator, with its types");
  command->add_option("--device", arguments->device, "One device [all that are available]");
  command->add_flag("--json", arguments->json, "A JSON line an operator");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace app
