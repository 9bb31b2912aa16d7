#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "run/task.h"

namespace russet::app {
namespace {

using nlohmann::json;

constexpr const char* key = "russet";

constexpr float mnist_mean = 0.1307F;
constexpr float mnist_std = 0.3081F;

ImageForm usual_form(const models::Preprocessing& usual, int channels) {
  if (channels == 1) return {usual.size, channels, {mnist_mean}, {mnist_std}};
  return {usual.size, channels, usual.mean, usual.std};
}

std::int64_t size_along(const io::WeightsFile& file, const std::string& name, int axis) {
  const io::WeightsEntry* entry = file.find(name);
  if (entry == nullptr || entry->shape.rank() <= axis || entry->shape[axis] < 1) {
    throw FileError(fmt::format("{}: there is no tensor \"{}\" as the model's weights have it", file.name(), name));
  }
  return entry->shape[axis];
}

std::int64_t classes_of(const io::WeightsFile& file, const std::string& classifier) {
  try {
    return size_along(file, classifier, 0);
  } catch (const FileError& error) {
    throw FileError(fmt::format("{}; russet train --classes N makes a new one", error.what()));
  }
}

Card card_from_shapes(const io::WeightsFile& file, const std::string& model, Head head) {
  const models::ModelSpec& spec = models::find_model(model);
  Card card;
  card.assumed = true;
  card.model = model;
  if (head == Head::loaded) card.num_classes = classes_of(file, spec.classifier);
  if (spec.takes == models::InputKind::tokens) return card;
  card.in_channels = size_along(file, spec.stem, 1);
  if (spec.takes == models::InputKind::numbers) {
    card.image_size = 1;
    return card;
  }
  card.image = usual_form(spec.preprocessing, static_cast<int>(std::min<std::int64_t>(*card.in_channels, 1 << 20)));
  card.image_size = card.image->size;
  return card;
}

json json_of(const ImageForm& form) {
  return {{"size", form.size}, {"channels", form.channels}, {"mean", form.mean}, {"deviation", form.std}};
}

Card card_from_json(const json& object) {
  Card card;
  card.model = object.at("model").get<std::string>();
  card.num_classes = object.at("num_classes").get<std::int64_t>();
  card.regression = object.value("regression", false);
  card.class_names = object.value("class_names", std::vector<std::string>{});
  if (object.contains("in_channels")) card.in_channels = object["in_channels"].get<std::int64_t>();
  if (object.contains("image_size")) card.image_size = object["image_size"].get<std::int64_t>();
  card.config = object.value("config", card.config);
  if (object.contains("width")) card.width = object["width"].get<double>();
  if (object.contains("image")) {
    const json& form = object["image"];
    card.image = ImageForm{form.at("size").get<std::int64_t>(), form.at("channels").get<int>(),
                           form.at("mean").get<std::vector<float>>(), form.at("deviation").get<std::vector<float>>()};
  }
  if (object.contains("text")) {
    card.text =
        TextForm{object["text"].at("max_length").get<std::int64_t>(), object["text"].at("lowercase").get<bool>()};
  }
  return card;
}

}  // namespace

io::Metadata to_metadata(const Card& card) {
  json object{{"model", card.model}, {"num_classes", card.num_classes}, {"class_names", card.class_names}};
  if (card.regression) object["regression"] = true;
  if (card.in_channels) object["in_channels"] = *card.in_channels;
  if (card.image_size) object["image_size"] = *card.image_size;
  if (card.width) object["width"] = *card.width;
  if (!card.config.empty()) object["config"] = card.config;
  if (card.image) object["image"] = json_of(*card.image);
  if (card.text) object["text"] = {{"max_length", card.text->max_length}, {"lowercase", card.text->lowercase}};
  return {{"format", "pt"}, {key, object.dump(-1, ' ', false, json::error_handler_t::replace)}};
}

std::optional<Card> card_in(const io::Metadata& metadata, const std::string& name) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  try {
    return card_from_json(json::parse(found->second));
  } catch (const json::exception&) {
    throw FileError(fmt::format("{}: what it says of its model cannot be read", name));
  }
}

Card card_of(const io::WeightsFile& file, const std::string& model, Head head) {
  models::find_model(model);
  const std::optional<Card> card = card_in(file.metadata(), file.name());
  if (!card) return card_from_shapes(file, model, head);
  if (card->model != model) {
    throw ValueError(fmt::format("{}: these are weights of {}, not of {}", file.name(), card->model, model));
  }
  return *card;
}

}  // namespace russet::app
