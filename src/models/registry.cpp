// Models by name.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <russet/models/registry.h>
#include <russet/runtime.h>

#include <algorithm>
#include <functional>
#include <mutex>

namespace russet::models {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, const ModelSpec, std::less<>> specs;  // never taken out again: references stay good
};

/// Made at its first use: models register themselves while the library is loaded.
Registry& registry() {
  static Registry all;
  return all;
}

void check(const ModelOptions& options, const ModelSpec& spec) {
  const auto positive = [&](std::string_view option, const std::optional<std::int64_t>& value) {
    if (value && *value < 1) throw ValueError(fmt::format("{}: {} is {}, not 1 or more", spec.name, option, *value));
  };
  positive("num_classes", options.num_classes);
  positive("in_channels", options.in_channels);
  positive("image_size", options.image_size);
  if (spec.takes == InputKind::tokens && (options.in_channels || options.image_size)) {
    throw ValueError(fmt::format("{}: there are no images, so no in_channels and no image_size", spec.name));
  }
  if (options.dropout && !(*options.dropout >= 0 && *options.dropout <= 1)) {
    throw ValueError(fmt::format("{}: dropout {} is no probability", spec.name, *options.dropout));
  }
  if (options.width && !(*options.width > 0 && *options.width <= 8)) {
    throw ValueError(fmt::format("{}: width {} is not above 0 and at most 8", spec.name, *options.width));
  }
  for (const auto& [name, value] : options.config) {
    if (std::find(spec.config.begin(), spec.config.end(), name) != spec.config.end()) continue;
    throw ValueError(fmt::format("{}: its configuration has no \"{}\"; it has: {}", spec.name, name,
                                 spec.config.empty() ? "nothing" : fmt::format("{}", fmt::join(spec.config, ", "))));
  }
}

ModelOptions completed(ModelOptions options, const ModelSpec& spec) {
  check(options, spec);
  if (!options.num_classes) options.num_classes = spec.num_classes;
  if (spec.takes != InputKind::images) return options;
  if (!options.in_channels) options.in_channels = spec.preprocessing.channels;
  if (!options.image_size) options.image_size = spec.preprocessing.size;
  return options;
}

std::vector<Input> inputs_of(const ModelSpec& spec, const ModelOptions& options) {
  if (spec.inputs != nullptr) return spec.inputs(options);
  return {
      {.name = "x", .shape = {*options.in_channels, *options.image_size, *options.image_size}, .dtype = options.dtype}};
}

}  // namespace

bool register_model(const ModelSpec& spec) {
  if (spec.name.empty() || spec.make == nullptr) throw ValueError("register_model: a name and a function are needed");
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (!all.specs.try_emplace(spec.name, spec).second) {
    throw ValueError(fmt::format("register_model: there is a model \"{}\" already", spec.name));
  }
  return true;
}

std::vector<std::string> list_models() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& [name, spec] : all.specs) names.push_back(name);
  return names;
}

const ModelSpec& find_model(std::string_view name) {
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto found = all.specs.find(name);
    if (found != all.specs.end()) return found->second;
  }
  throw ValueError(fmt::format("there is no model \"{}\"; the models are {}", name, fmt::join(list_models(), ", ")));
}

Model get_model(std::string_view name, const ModelOptions& options) {
  const ModelSpec& spec = find_model(name);
  const ModelOptions complete = completed(options, spec);
  const nn::NewModules place(options.device, options.dtype);
  const std::vector<Input> inputs = inputs_of(spec, complete);
  const std::int64_t classes = spec.answers_tokens ? inputs.front().limit : *complete.num_classes;
  Model model(spec.make(complete), spec, inputs, classes);
  flush();
  return model;
}

}  // namespace russet::models
