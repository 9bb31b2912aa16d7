#include "device/gpu/library.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <set>

#include "device/gpu/compilations.h"
#include "device/gpu/kernels.h"

namespace russet::gpu {
namespace {

/// More units compile side by side, more entries share a prelude.
constexpr std::size_t entries_of_unit = 32;

/// Half again as many as are compiled side by side: whose unit is a quick one takes another.
std::size_t usual_units() { return compilations_at_once() * 3 / 2; }

/// FNV-1a (Fowler, Noll and Vo), twice over with different starts: 128 bits, so that texts never meet by accident.
std::string digest(const Source& source) {
  std::uint64_t low = 0xCBF29CE484222325ULL;
  std::uint64_t high = 0x84222325CBF29CE4ULL;
  const auto feed = [&](std::string_view text) {
    for (const char c : text) {
      low = (low ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
      high = (high ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL + 0x9E3779B97F4A7C15ULL;
    }
    low = (low ^ 0xFF) * 0x100000001B3ULL;
  };
  feed(source.text);
  for (const std::string& file : source.files) feed(file);
  feed(std::to_string(source.threads));
  return fmt::format("{:016x}{:016x}", low, high);
}

std::string with_name(std::string_view text, std::string_view name) {
  std::string result;
  for (const char c : text) {
    if (c == '@') {
      result += name;
    } else {
      result += c;
    }
  }
  return result;
}

/// The file, after those that it needs.
void add_file(std::string_view name, std::set<std::string, std::less<>>& added, std::string& text) {
  if (!added.insert(std::string(name)).second) return;
  const std::string_view content = kernel_text(name);
  constexpr std::string_view needs = "// needs: ";
  for (std::size_t line = 0; content.substr(line, 2) == "//";) {
    const std::size_t end = std::min(content.find('\n', line), content.size());
    const std::string_view comment = content.substr(line, end - line);
    if (comment.starts_with(needs)) add_file(comment.substr(needs.size()), added, text);
    line = end + 1;
    if (line >= content.size()) break;
  }
  text += content;
  text += '\n';
}

}  // namespace

FunctionPtr Library::add(Source source) {
  const std::string name = fmt::format("{}_{}", source.stem, digest(source));
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Function>& known = functions_[name];
  FunctionPtr function = known.lock();
  if (!function) {
    source.text = with_name(source.text, name);
    function = std::make_shared<Function>(std::move(source), name);
    known = function;
    if (functions_.size() % 1024 == 0) {
      std::erase_if(functions_, [](const auto& entry) { return entry.second.expired(); });
    }
  }
  return function;
}

std::vector<CompilationUnit> make_units(std::span<const FunctionPtr> functions) {
  const std::size_t least = (functions.size() + entries_of_unit - 1) / entries_of_unit;
  const std::size_t count = std::max(least, std::min(functions.size(), usual_units()));
  std::vector<CompilationUnit> units(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto share = functions.subspan(i * functions.size() / count,
                                         (i + 1) * functions.size() / count - i * functions.size() / count);
    std::set<std::string, std::less<>> added;
    for (const FunctionPtr& function : share) {
      for (const std::string& file : function->source().files) add_file(file, added, units[i].text);
    }
    for (const FunctionPtr& function : share) {
      units[i].text += function->source().text;
      units[i].text += '\n';
      units[i].entry_points.push_back({function->name(), function->source().threads, function->source().large_memory});
    }
  }
  return units;
}

std::string names_of(const CompilationUnit& unit) {
  std::string names;
  for (const EntryPoint& entry : unit.entry_points) names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

void Library::build(std::span<const FunctionPtr> functions) {
  const std::lock_guard lock(building_);
  std::vector<FunctionPtr> wanted;
  std::set<const Function*> seen;
  for (const FunctionPtr& function : functions) {
    if (!function->pipeline_ && seen.insert(function.get()).second) wanted.push_back(function);
  }
  if (wanted.empty()) return;
  const std::vector<CompilationUnit> units = make_units(wanted);
  const auto pipelines = driver_.build(units);
  if (pipelines.size() != wanted.size()) {
    throw InternalError(fmt::format("{} kernels were built of {}", pipelines.size(), wanted.size()));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i]->pipeline_ = pipelines[i];
}

}  // namespace russet::gpu
