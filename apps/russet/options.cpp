#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <russet/error.h>
#include <russet/models/registry.h>
#include <russet/optim/make_optimizer.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace russet::app {
namespace {

using nlohmann::json;
using Value = Arguments::Value;

std::vector<std::string_view> split(std::string_view text, std::string_view between) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(between), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + between.size(), text.size()));
  }
  return parts;
}

bool contains(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool belongs_to(const OptionRow& row, std::string_view command) { return contains(split(row.commands, " "), command); }

bool has(const OptionRow& row, Trait trait) { return (row.traits & trait) != 0; }

bool is_on_by_default(const OptionRow& row) { return row.kind == Kind::flag && row.usual.text == "true"; }

/// "--lr", "--no-shuffle", or "MODEL" for what is told by its place.
std::string word_of(const OptionRow& row) {
  if (!has(row, positional)) return fmt::format("--{}{}", is_on_by_default(row) ? "no-" : "", row.name);
  std::string word(row.name);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
  return word;
}

/// As errors name it, with its value: "--lr 0.1", "model lenet5".
std::string shown(const OptionRow& row, std::string_view value) {
  return fmt::format("{}{} {}", has(row, positional) ? "" : "--", row.name, value);
}

/// With the names that a word of capitals stands for.
std::string with_names(std::string_view given) {
  std::string text(given);
  const auto replace = [&](std::string_view word, const std::vector<std::string>& names) {
    const std::size_t place = text.find(word);
    if (place != std::string::npos) text.replace(place, word.size(), fmt::format("{}", fmt::join(names, ", ")));
  };
  replace("MODELS", models::list_models());
  replace("OPTIMIZERS", optim::list_optimizers());
  return text;
}

std::string help_of(const OptionRow& row) {
  const std::string help = with_names(row.help);
  if (row.usual.text.empty() || row.kind == Kind::flag) return help;
  return fmt::format("{} [{}]", help, row.usual.text);
}

/// "at least 0 and less than 1".
std::string bounds_of(const AllowedValues& range) {
  std::vector<std::string> bounds;
  if (std::isfinite(range.low)) bounds.push_back(fmt::format("{} {}", range.has_low ? "at least" : "above", range.low));
  if (std::isfinite(range.high)) {
    bounds.push_back(fmt::format("{} {}", range.has_high ? "at most" : "less than", range.high));
  }
  return fmt::format("{}", fmt::join(bounds, " and "));
}

/// Refuses NaN and, for real numbers, infinity too.
bool holds(const AllowedValues& range, double value) {
  const bool low = range.has_low ? value >= range.low : value > range.low;
  const bool high = range.has_high ? value <= range.high : value < range.high;
  return std::isfinite(value) && low && high;
}

void require_number(const OptionRow& row, double value) {
  if (holds(row.allowed, value)) return;
  const std::string bounds = bounds_of(row.allowed);
  throw ValueError(fmt::format("{}: it must be {}", shown(row, fmt::format("{}", value)),
                               bounds.empty() ? "a finite number" : bounds));
}

void require_choice(const OptionRow& row, const std::string& word) {
  const std::string choices = with_names(row.allowed.choices);
  if (choices.empty() || contains(split(choices, ", "), word)) return;
  throw ValueError(fmt::format("{}: the choices are {}", shown(row, word), choices));
}

/// A whole number stands for a real one.
Value of_kind(const OptionRow& row, Value value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  if (row.kind == Kind::real && whole != nullptr) return static_cast<double>(*whole);
  const bool fits = row.kind == Kind::text       ? std::holds_alternative<std::string>(value)
                    : row.kind == Kind::texts    ? std::holds_alternative<std::vector<std::string>>(value)
                    : row.kind == Kind::words    ? std::holds_alternative<std::vector<std::string>>(value)
                    : row.kind == Kind::integers ? std::holds_alternative<std::vector<std::int64_t>>(value)
                    : row.kind == Kind::real     ? std::holds_alternative<double>(value)
                    : row.kind == Kind::flag     ? std::holds_alternative<bool>(value)
                                                 : whole != nullptr;
  if (!fits) throw InternalError(fmt::format("--{}: it was set to a value of another kind", row.name));
  return value;
}

Value default_of(const OptionRow& row) {
  const std::string text(row.usual.text);
  switch (row.kind) {
    case Kind::integer: return static_cast<std::int64_t>(std::stoll(text));
    case Kind::real: return std::stod(text);
    case Kind::bytes: return static_cast<std::int64_t>(parse_size(text));
    case Kind::flag: return text == "true";
    case Kind::texts:
    case Kind::words: return std::vector<std::string>{text};
    case Kind::integers: return std::vector<std::int64_t>{std::stoll(text)};
    case Kind::text: break;
  }
  return text;
}

json to_json(const Value& value) {
  return std::visit([](const auto& held) { return json(held); }, value);
}

Value from_json(const OptionRow& row, const json& value) {
  switch (row.kind) {
    case Kind::integer:
    case Kind::bytes: return value.get<std::int64_t>();
    case Kind::real: return value.get<double>();
    case Kind::flag: return value.get<bool>();
    case Kind::texts:
    case Kind::words: return value.get<std::vector<std::string>>();
    case Kind::integers: return value.get<std::vector<std::int64_t>>();
    case Kind::text: break;
  }
  return value.get<std::string>();
}

template <class T>
std::string text_of_held(const T& held) {
  return fmt::format("{}", held);
}
std::string text_of_held(const std::vector<std::string>& held) { return fmt::format("{}", fmt::join(held, " ")); }
std::string text_of_held(const std::vector<std::int64_t>& held) { return fmt::format("{}", fmt::join(held, ",")); }

std::string text_of(const Value& value) {
  return std::visit([](const auto& held) { return text_of_held(held); }, value);
}

}  // namespace

const OptionRow* Arguments::row(std::string_view name) const {
  const auto* const found = std::find_if(std::begin(option_table), std::end(option_table), [&](const OptionRow& row) {
    return row.name == name && belongs_to(row, command_);
  });
  return found == std::end(option_table) ? nullptr : found;
}

std::optional<Value> Arguments::find(std::string_view name) const {
  const auto given = given_.find(name);
  if (given != given_.end()) return given->second;
  const OptionRow* row = this->row(name);
  if (row == nullptr || !row->usual.is_value) return std::nullopt;
  return default_of(*row);
}

void Arguments::set_checked(std::string_view name, Value value) {
  const OptionRow* row = this->row(name);
  if (row == nullptr) throw InternalError(fmt::format("{} has no option --{}", command_, name));
  value = of_kind(*row, std::move(value));
  if (const auto* whole = std::get_if<std::int64_t>(&value)) require_number(*row, static_cast<double>(*whole));
  if (const auto* real = std::get_if<double>(&value)) require_number(*row, *real);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (const std::int64_t each : *list) require_number(*row, static_cast<double>(each));
  }
  if (const auto* word = std::get_if<std::string>(&value)) require_choice(*row, *word);
  given_.insert_or_assign(row->name, std::move(value));
}

std::string Arguments::to_json() const {
  json object = json::object();
  for (const OptionRow& row : option_table) {
    if (!app::has(row, remembered) || !belongs_to(row, command_)) continue;
    if (const std::optional<Value> value = find(row.name)) object[std::string(row.name)] = app::to_json(*value);
  }
  return object.dump();
}

Arguments Arguments::from_json(std::string_view command, std::string_view text) {
  try {
    const json object = json::parse(text);
    Arguments arguments(command);
    for (const auto& [name, value] : object.items()) {
      const OptionRow* row = arguments.row(name);
      if (row != nullptr && app::has(*row, remembered)) arguments.set_checked(name, app::from_json(*row, value));
    }
    return arguments;
  } catch (const json::exception& error) {
    throw FileError(fmt::format("the options of the run cannot be read: {}", error.what()));
  } catch (const ValueError& error) {
    throw FileError(fmt::format("the options of the run cannot be read: {}", error.what()));
  }
}

std::vector<std::pair<std::string, std::string>> Arguments::remembered_values() const {
  std::vector<std::pair<std::string, std::string>> values;
  for (const OptionRow& row : option_table) {
    if (!app::has(row, remembered) || !belongs_to(row, command_)) continue;
    if (const std::optional<Value> value = find(row.name)) values.emplace_back(row.name, text_of(*value));
  }
  return values;
}

std::vector<std::string> Arguments::differences(const Arguments& started) const {
  std::vector<std::string> found;
  for (const auto& [name, value] : given_) {
    const OptionRow& row = *this->row(name);
    const std::optional<Value> other = started.find(name);
    if (!app::has(row, remembered) || other == value) continue;
    const std::string before = other ? "was " + text_of(*other) : "was not given";
    found.push_back(fmt::format("{} (it {})", shown(row, text_of(value)), before));
  }
  return found;
}

namespace {

CLI::Option* add_option(CLI::App& command, const OptionRow& row, const std::function<void(Value)>& set) {
  const std::string word = word_of(row);
  const std::string help = help_of(row);
  switch (row.kind) {
    case Kind::integer: return command.add_option_function<std::int64_t>(word, set, help);
    case Kind::real: return command.add_option_function<double>(word, set, help);
    case Kind::texts: return command.add_option_function<std::vector<std::string>>(word, set, help);
    case Kind::words:
      return command.add_option_function<std::vector<std::string>>(word, set, help)
          ->delimiter(',')
          ->allow_extra_args(false);
    case Kind::integers:
      return command.add_option_function<std::vector<std::int64_t>>(word, set, help)
          ->delimiter(',')
          ->allow_extra_args(false);
    case Kind::flag:
      return command.add_flag_callback(
          word, [set, on = !is_on_by_default(row)] { set(on); }, help);
    case Kind::bytes:
      return command.add_option_function<std::string>(
          word, [set](const std::string& text) { set(static_cast<std::int64_t>(parse_size(text))); }, help);
    case Kind::text: break;
  }
  return command.add_option_function<std::string>(word, set, help);
}

}  // namespace

void add_options(CLI::App& command, Arguments& arguments) {
  for (const OptionRow& row : option_table) {
    if (!belongs_to(row, arguments.command_)) continue;
    const auto set = [&arguments, name = row.name](Value value) { arguments.set_checked(name, std::move(value)); };
    CLI::Option* option = add_option(command, row, set);
    if (has(row, required)) option->required();
  }
}

std::string options_page() {
  std::string page =
      "# The options of the command line\n\n"
      "Made from the table in apps/russet/options.h by `build/tests/app_options_test --write`. `russet COMMAND --help` "
      "says the same, and names all MODELS.\n";
  std::vector<std::string_view> commands;
  for (const OptionRow& row : option_table) {
    for (const std::string_view command : split(row.commands, " ")) {
      if (!contains(commands, command)) commands.push_back(command);
    }
  }
  for (const std::string_view command : commands) {
    page += fmt::format("\n## russet {}\n\n| option | default | range | |\n| --- | --- | --- | --- |\n", command);
    for (const OptionRow& row : option_table) {
      if (!belongs_to(row, command)) continue;
      const std::string range = row.allowed.choices.empty() ? bounds_of(row.allowed) : with_names(row.allowed.choices);
      const std::string_view usual = row.kind == Kind::flag ? "" : has(row, required) ? "required" : row.usual.text;
      page += fmt::format("| `{}` | {} | {} | {} |\n", word_of(row), usual, range, row.help);
    }
  }
  return page;
}

namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array<Unit, 15> units{{{"", 1},
                                      {"b", 1},
                                      {"k", 1024},
                                      {"kb", 1e3},
                                      {"kib", 1024},
                                      {"m", 0x1p20},
                                      {"mb", 1e6},
                                      {"mib", 0x1p20},
                                      {"g", 0x1p30},
                                      {"gb", 1e9},
                                      {"gib", 0x1p30},
                                      {"t", 0x1p40},
                                      {"tb", 1e12},
                                      {"tib", 0x1p40},
                                      {"byte", 1}}};

}  // namespace

std::uint64_t parse_size(std::string_view text) {
  const std::string word(text);
  std::size_t used = 0;
  double number = -1;
  try {
    number = std::stod(word, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  std::string unit;
  for (const char letter : word.substr(used)) {
    if (letter != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  const auto* const found = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == unit; });
  const double bytes = found == units.end() ? -1 : number * found->bytes;
  if (used == 0 || !(bytes >= 0) || bytes > 0x1p62) {
    throw ValueError(fmt::format("{} is no size: a number and a unit are expected, such as 2.5GiB, 512MB or 1000000",
                                 word.empty() ? "\"\"" : word));
  }
  return static_cast<std::uint64_t>(std::llround(bytes));
}

std::string format_size(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1024) return fmt::format("{} B", bytes);
  if (value < 0x1p20) return fmt::format("{:.1f} KiB", value / 0x1p10);
  if (value < 0x1p30) return fmt::format("{:.1f} MiB", value / 0x1p20);
  return fmt::format("{:.2f} GiB", value / 0x1p30);
}

}  // namespace russet::app
