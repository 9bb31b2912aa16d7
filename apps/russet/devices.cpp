// russet devices: what there is, what it can do, and why the others are not available.
#include <russet/runtime.h>
#include <russet/train/options.h>

#include <memory>

#include "command.h"

namespace app {
namespace {

std::vector<std::string> type_names(const russet::DeviceInfo& info) {
  std::vector<std::string> names;
  for (const russet::DType type : info.dtypes) names.emplace_back(russet::name_of(type));
  return names;
}

Json describe(const russet::DeviceInfo& info) {
  Json entry{{"device", to_string(info.device)}, {"available", info.available}};
  if (!info.available) {
    entry["reason"] = info.reason;
    return entry;
  }
  entry["name"] = info.name;
  entry["types"] = type_names(info);
  entry["cores"] = info.cores;
  entry["memory_bytes"] = info.memory_bytes;
  entry["instruction_sets"] = info.instruction_sets;
  return entry;
}

void print(const russet::DeviceInfo& info) {
  if (!info.available) {
    fmt::print("{:<10} not available: {}\n", to_string(info.device), info.reason);
    return;
  }
  fmt::print("{:<10} {}\n", to_string(info.device), info.name);
  if (info.cores > 0) fmt::print("{:<10} cores: {}\n", "", info.cores);
  if (info.memory_bytes > 0) fmt::print("{:<10} memory: {}\n", "", russet::train::format_size(info.memory_bytes));
  if (!info.instruction_sets.empty()) fmt::print("{:<10} instruction sets: {}\n", "", join(info.instruction_sets, " "));
  fmt::print("{:<10} types: {}\n", "", join(type_names(info), " "));
}

}  // namespace

void add_devices(CLI::App& program) {
  CLI::App* command = program.add_subcommand("devices", "What there is, what it can do, and why others are missing");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "A JSON line a device");
  command->callback([json] {
    for (const russet::DeviceInfo& info : russet::devices()) {
      if (*json) {
        print_json(describe(info));
      } else {
        print(info);
      }
    }
  });
}

}  // namespace app
