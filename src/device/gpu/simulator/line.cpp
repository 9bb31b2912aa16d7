#include "line.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <map>
#include <mutex>

#include "process.h"

namespace russet::simulator {
namespace {

/// addr2line prints FILE:LINE for the place and each function that it is inlined into, innermost first. The first one
/// in the kernel's own text counts; others are in the prelude. Of a trap it knows the innermost alone.
std::string ask(const Dl_info& module, std::uintptr_t offset) {
  const std::string words[] = {"addr2line", "-i", "-e", module.dli_fname, fmt::format("{:#x}", offset)};
  const Finished finished = run_program(words);
  std::string_view rest = finished.output;
  std::string in_prelude;
  while (finished.status == 0 && !rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t colon = line.rfind(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view file = line.substr(0, colon);
    std::string_view number = line.substr(colon + 1);
    number = number.substr(0, number.find_first_not_of("0123456789"));
    if (file.ends_with("kernel")) return fmt::format("line {}", number);
    if (file.find("prelude/") == std::string_view::npos || !in_prelude.empty()) continue;
    in_prelude = fmt::format("line {} of {}", number, file.substr(file.rfind("prelude/")));
  }
  if (!in_prelude.empty()) return in_prelude;
  return fmt::format("address {:#x} of {}", offset, module.dli_fname);
}

}  // namespace

std::string line_of(const void* site) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::uintptr_t>, std::string> known;
  Dl_info module;
  if (site == nullptr || dladdr(site, &module) == 0) return "an unknown line";
  const std::uintptr_t offset =
      reinterpret_cast<std::uintptr_t>(site) - 1 - reinterpret_cast<std::uintptr_t>(module.dli_fbase);
  const std::lock_guard lock(mutex);
  const auto [entry, fresh] = known.try_emplace({module.dli_fname, offset});
  if (fresh) entry->second = ask(module, offset);
  return entry->second;
}

std::string group_name(const russet_simulator::Threadgroup& threadgroup) {
  return fmt::format("({}, {}, {})", threadgroup.group_id[0], threadgroup.group_id[1], threadgroup.group_id[2]);
}

}  // namespace russet::simulator
