#include <fmt/format.h>
#include <mutex>
#include <set>
#include <utility>

#include "base/log.h"
#include "machine.h"

namespace russet::simulator {
namespace {

/// A kernel that is wrong is often wrong at every element.
constexpr std::size_t kept = 1000;

struct Reports {
  std::mutex mutex;
  std::vector<CheckReport> found;
  std::set<std::string> logged;
};

Reports& reports() {
  static Reports* const all = new Reports;  // outlives whatever runs at exit
  return *all;
}

}  // namespace

void add_report(CheckReport report) {
  const std::string line = fmt::format("{}: {}: {}", report.check, report.kernel, report.message);
  Reports& all = reports();
  const std::lock_guard lock(all.mutex);
  if (all.found.size() < kept) all.found.push_back(std::move(report));
  if (all.logged.size() < kept && all.logged.insert(line).second) base::log_line("simulator", line);
}

std::vector<CheckReport> take_reports() {
  Reports& all = reports();
  const std::lock_guard lock(all.mutex);
  return std::exchange(all.found, {});
}

}  // namespace russet::simulator
