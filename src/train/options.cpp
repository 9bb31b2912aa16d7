#include <fmt/format.h>
#include <fmt/ranges.h>
#include <russet/error.h>
#include <russet/models/registry.h>
#include <russet/train/options.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace russet::train {
namespace {

using nlohmann::json;

template <class T>
void default_to(std::optional<T>& field, T value) {
  if (!field) field = std::move(value);
}

void require_choice(std::string_view name, const std::string& value, std::initializer_list<std::string_view> choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  throw ValueError(fmt::format("--{} {}: the choices are {}", name, value, fmt::join(choices, ", ")));
}

template <class T>
void require(bool holds, std::string_view name, const std::optional<T>& value, std::string_view what) {
  if (value && !holds) throw ValueError(fmt::format("--{} {}: it must be {}", name, *value, what));
}

template <class T>
void require_at_least(T least, std::string_view name, const std::optional<T>& value) {
  require(!value || *value >= least, name, value, fmt::format("at least {}", least));
}

/// Refuses NaN too.
void require_share(std::string_view name, const std::optional<double>& value) {
  require(!value || (*value >= 0 && *value < 1), name, value, "at least 0 and less than 1");
}

void check(const Options& options) {
  require_choice("precision", *options.precision, {"fp32", "bf16"});
  require_choice("optimizer", *options.optimizer, {"sgd", "adam", "adamw"});
  require_choice("schedule", *options.schedule, {"cosine", "step", "none"});
  require_choice("augment", *options.augment, {"standard", "none"});
  require_at_least<std::int64_t>(1, "epochs", options.epochs);
  require_at_least<std::int64_t>(1, "steps", options.steps);
  require_at_least<std::int64_t>(1, "batch", options.batch);
  require_at_least<std::int64_t>(1, "accumulate", options.accumulate);
  require_at_least<std::int64_t>(0, "warmup", options.warmup);
  require_at_least<std::int64_t>(0, "seed", options.seed);
  require_at_least<std::int64_t>(1, "checkpoint-every", options.checkpoint_every);
  require(*options.batch <= 1'000'000, "batch", options.batch, "at most 1000000");
  require(std::isfinite(*options.lr) && *options.lr >= 0, "lr", options.lr, "a number that is not negative");
  require(std::isfinite(*options.weight_decay) && *options.weight_decay >= 0, "weight-decay", options.weight_decay,
          "a number that is not negative");
  require(std::isfinite(*options.clip_grad) && *options.clip_grad >= 0, "clip-grad", options.clip_grad,
          "a number that is not negative");
  require_share("momentum", options.momentum);
  require_share("label-smoothing", options.label_smoothing);
  require_share("dropout", options.dropout);
  require(!options.width || (*options.width > 0 && *options.width <= 8), "width", options.width,
          "above 0 and at most 8");
  require_share("holdout", options.holdout);
  if (options.epochs && options.steps) throw ValueError("--epochs and --steps: one of them says how long to train");
  if (options.data.empty()) throw ValueError("--data is missing");
}

void write(json& object, const char* name, const std::string& value) { object[name] = value; }
template <class T>
void write(json& object, const char* name, const std::optional<T>& value) {
  if (value) object[name] = *value;
}
void read(const json& object, const char* name, std::string& value) {
  if (object.contains(name)) value = object.at(name).get<std::string>();
}
template <class T>
void read(const json& object, const char* name, std::optional<T>& value) {
  if (object.contains(name)) value = object.at(name).get<T>();
}

std::string word_of(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

}  // namespace

Options with_defaults(Options options) {
  if (options.model.empty()) throw ValueError("the model is missing");
  const models::Recipe& recipe = models::find_model(options.model).recipe;
  default_to<std::string>(options.device, "cpu");
  default_to<std::string>(options.precision, "fp32");
  if (!options.epochs && !options.steps) options.epochs = recipe.epochs;
  default_to(options.batch, recipe.batch);
  default_to<std::int64_t>(options.accumulate, 1);
  default_to(options.optimizer, recipe.optimizer.name);
  const bool own = options.optimizer == recipe.optimizer.name;
  default_to(options.lr, own ? recipe.optimizer.lr : options.optimizer == "sgd" ? 0.05 : 1e-3);
  default_to(options.momentum, 0.9);
  default_to(options.weight_decay, own ? recipe.optimizer.weight_decay : options.optimizer == "adamw" ? 0.01 : 0.0);
  default_to<std::string>(options.schedule, "cosine");
  default_to(options.warmup, recipe.warmup);
  default_to(options.clip_grad, 0.0);
  default_to(options.label_smoothing, 0.0);
  default_to<std::string>(options.augment, "standard");
  default_to<std::int64_t>(options.seed, 0);
  default_to(options.shuffle, true);
  default_to<std::int64_t>(options.workers, -1);
  check(options);
  options.device = to_string(options.on());  // throws for a name that is no device's
  return options;
}

std::string to_json(const Options& options) {
  json object = json::object();
  visit_deciding(options, [&](const char* name, const auto& field) { write(object, name, field); });
  return object.dump();
}

Options options_from_json(std::string_view text) {
  try {
    const json object = json::parse(text);
    Options options;
    visit_deciding(options, [&](const char* name, auto& field) { read(object, name, field); });
    return options;
  } catch (const json::exception& error) {
    throw FileError(fmt::format("the options of the run cannot be read: {}", error.what()));
  }
}

std::vector<std::string> differences(const Options& given, const Options& started) {
  const json ours = json::parse(to_json(given));
  const json theirs = json::parse(to_json(started));
  std::vector<std::string> found;
  for (const auto& [name, value] : ours.items()) {
    if (value == "" || (theirs.contains(name) && theirs[name] == value)) continue;
    const std::string before = theirs.contains(name) ? "was " + word_of(theirs[name]) : "was not given";
    found.push_back(fmt::format("{}{} {} (it {})", name == "model" ? "" : "--", name, word_of(value), before));
  }
  return found;
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

}  // namespace russet::train
