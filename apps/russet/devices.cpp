// russet devices: what there is, what it can do, and why the others are not available.
#include <russet/runtime.h>

#include "command.h"

namespace russet::app {
namespace {

std::vector<std::string> type_names(const DeviceInfo& info) {
  std::vector<std::string> names;
  for (const DType type : info.dtypes) names.emplace_back(name_of(type));
  return names;
}

Json describe(const DeviceInfo& info) {
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
  for (const LibraryInfo& library : info.libraries) {
    Json described{{"name", library.name}, {"available", library.reason.empty()}};
    if (!library.reason.empty()) described["reason"] = library.reason;
    entry["libraries"].push_back(std::move(described));
  }
  return entry;
}

void print(const DeviceInfo& info) {
  if (!info.available) {
    fmt::print("{:<10} not available: {}\n", to_string(info.device), info.reason);
    return;
  }
  fmt::print("{:<10} {}\n", to_string(info.device), info.name);
  if (info.cores > 0) fmt::print("{:<10} cores: {}\n", "", info.cores);
  if (info.memory_bytes > 0) fmt::print("{:<10} memory: {}\n", "", format_size(info.memory_bytes));
  if (!info.instruction_sets.empty()) fmt::print("{:<10} instruction sets: {}\n", "", join(info.instruction_sets, " "));
  fmt::print("{:<10} types: {}\n", "", join(type_names(info), " "));
  for (const LibraryInfo& library : info.libraries) {
    if (library.reason.empty()) {
      fmt::print("{:<10} library: {}\n", "", library.name);
    } else {
      fmt::print("{:<10} without {}, kernels of russet's own do its work: {}\n", "", library.name, library.reason);
    }
  }
}

}  // namespace

void run_devices(const Arguments& arguments) {
  for (const DeviceInfo& info : devices()) {
    if (arguments.flag("json")) {
      print_json(describe(info));
    } else {
      print(info);
    }
  }
}

}  // namespace russet::app
