#include "run/task.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <utility>

#include "run/model_config.h"
#include "run/open_data.h"
#include "run/text_data.h"

namespace russet::app {
namespace {

using data::Transform;

constexpr std::int64_t small_side = 64;  // below: pictures like CIFAR's; from there on: like ImageNet's

ImageForm form_of(const Arguments& arguments, const models::Preprocessing& usual, const Shape& image) {
  ImageForm form;
  form.size = arguments.has("image-size") ? arguments.integer("image-size") : usual.size;
  form.channels = static_cast<int>(usual.any_channels ? image[0] : usual.channels);
  form.mean = usual.mean;
  form.std = usual.std;
  if (arguments.text("data").starts_with("mnist:")) {
    form.mean = {0.1307F};
    form.std = {0.3081F};
  } else if (arguments.text("data") == "shapes") {
    form.mean = {0.5F};
    form.std = {0.25F};
  } else if (form.channels == 1) {
    form.mean = {0.481F};
    form.std = {0.239F};
  }
  return form;
}

[[noreturn]] void refuse_shape(const Arguments& arguments, const Shape& shape, std::string_view expected) {
  throw ShapeError(fmt::format("{}: tensor x has the shape [n, ...] with {} for a sample, but {} takes {}",
                               arguments.text("data"), to_string(shape), arguments.text("model"), expected));
}

void fit_to_tensors(const Arguments& arguments, const models::ModelSpec& spec, const data::Field& input, Card& card) {
  const Shape& shape = input.shape;
  switch (spec.takes) {
    case models::InputKind::tokens:
      if (shape.rank() != 1 || !is_integral(input.dtype))
        refuse_shape(arguments, shape, "token ids: integers [length]");
      break;
    case models::InputKind::numbers:
      if (numel(shape) < 1) refuse_shape(arguments, shape, "at least one number");
      card.in_channels = numel(shape);
      card.image_size = 1;
      break;
    case models::InputKind::images:
      if (shape.rank() != 3 || numel(shape) < 1) refuse_shape(arguments, shape, "images: [channels, height, width]");
      card.in_channels = shape[0];
      if (spec.any_image_size) break;
      if (shape[1] != shape[2]) refuse_shape(arguments, shape, "square images");
      card.image_size = shape[1];
      break;
  }
}

void fit_to_images(const Arguments& arguments, const models::ModelSpec& spec, const Shape& image, Card& card) {
  if (spec.takes == models::InputKind::tokens) {
    throw ValueError(fmt::format(
        "{} takes token ids, not the images of {}: use trec:FILE, or tensors:FILE.safetensors with ids in x "
        "and classes in y",
        arguments.text("model"), arguments.text("data")));
  }
  card.image = form_of(arguments, spec.preprocessing, image);
  card.in_channels = card.image->channels;
  card.image_size = card.image->size;
}

std::int64_t outputs_of(const Arguments& arguments, const data::Dataset& dataset, Card& card) {
  const data::Field target = dataset.target();
  if (is_integral(target.dtype)) {
    if (dataset.classes() < 1) {
      throw ValueError(
          fmt::format("{}: integer targets must be classes: one number from 0 a sample", arguments.text("data")));
    }
    return dataset.classes();
  }
  card.regression = true;
  if (target.shape.rank() != 1 || target.shape[0] < 1) {
    throw ValueError(fmt::format("{}: targets must be classes (integers [n]) or numbers (floats [n, outputs])",
                                 arguments.text("data")));
  }
  return target.shape[0];
}

std::string_view unit_of(const Card& card) { return card.regression ? "numbers" : "classes"; }

/// The outputs that --classes asks for; as many as the data has, if it does not.
void set_classes(const Arguments& arguments, Card& card) {
  if (!arguments.has("classes")) return;
  const std::int64_t classes = arguments.integer("classes");
  if (classes < card.num_classes || (card.regression && classes != card.num_classes)) {
    throw ValueError(
        fmt::format("--classes {}: {} has {} {}", classes, arguments.text("data"), card.num_classes, unit_of(card)));
  }
  card.num_classes = classes;
}

/// The part of a card that the data has no say in. `known`: what a file of weights says.
Card new_card(const Arguments& arguments, const std::optional<Card>& known) {
  Card card;
  card.model = arguments.text("model");
  if (arguments.has("width")) card.width = arguments.real("width");
  if (arguments.has("config")) {
    card.config = read_model_config(arguments.text("config"), models::find_model(card.model));
  } else if (known) {
    card.config = known->config;
  }
  if (is_text(arguments)) card.text = text_form_of(arguments, known ? known->text.value_or(TextForm{}) : TextForm{});
  return card;
}

/// The files of text, as ids.
data::Parts open_texts(const Arguments& arguments, const Card& card) {
  if (models::find_model(card.model).takes != models::InputKind::tokens) {
    throw ValueError(fmt::format("{} does not take text, which {} is", card.model, arguments.text("data")));
  }
  if (arguments.has("test") && arguments.has("holdout")) {
    throw ValueError("--test and --holdout: one of them says what to evaluate on");
  }
  return open_text(arguments, open_tokenizer(arguments, card), card);
}

data::Parts open_parts(const Arguments& arguments, const Card& card) {
  if (is_text(arguments)) return open_texts(arguments, card);
  if (arguments.has("test") || arguments.has("vocab") || arguments.has("max-length")) {
    throw ValueError(
        fmt::format("--test, --vocab and --max-length are for text, which {} is not", arguments.text("data")));
  }
  return open_data(arguments.text("data"));
}

/// For a model that learns from views of images.
void fit_to_views(const Arguments& arguments, const models::ModelSpec& spec, Card& card) {
  if (!card.image) {
    throw ValueError(fmt::format("{} learns from augmented views of images, which {} has none of", card.model,
                                 arguments.text("data")));
  }
  if (arguments.has("classes")) throw ValueError(fmt::format("--classes: {} learns without classes", card.model));
  if (arguments.text("augment") == "none") {
    throw ValueError(fmt::format("--augment none: {} learns from augmented views of images", card.model));
  }
  card.num_classes = spec.num_classes;
}

/// For a model that learns masked words.
void fit_to_words(const Arguments& arguments, Card& card) {
  if (!card.text) {
    throw ValueError(fmt::format("{} learns words of text, which {} is not: use text:FILE or trec:FILE", card.model,
                                 arguments.text("data")));
  }
  if (arguments.has("classes"))
    throw ValueError(fmt::format("--classes: {} learns the words of its vocabulary", card.model));
  card.num_classes = models::find_model(card.model).inputs(card.model_options()).front().limit;
}

/// Completes the card with what the data asks for.
Card card_for(const Arguments& arguments, const data::Dataset& dataset, Card card) {
  const models::ModelSpec& spec = models::find_model(arguments.text("model"));
  const data::Field input = dataset.input();
  if (arguments.text("data").starts_with("tensors:") || card.text) {
    if (arguments.has("image-size")) {
      throw ValueError(fmt::format("--image-size: {} has no images, which alone are scaled", arguments.text("data")));
    }
    fit_to_tensors(arguments, spec, input, card);
  } else {
    fit_to_images(arguments, spec, input.shape, card);
  }
  if (card.objective() == train::Objective::contrastive) {
    fit_to_views(arguments, spec, card);
    return card;
  }
  if (arguments.has("temperature")) {
    throw ValueError(fmt::format("--temperature: {} learns classes, without a temperature", card.model));
  }
  if (spec.answers_tokens) {
    fit_to_words(arguments, card);
    return card;
  }
  card.num_classes = outputs_of(arguments, dataset, card);
  set_classes(arguments, card);
  card.class_names = dataset.class_names();
  return card;
}

/// Throws ValueError if the weights take other inputs than the data has.
void require_inputs(const Card& known, const Card& wanted, const Arguments& arguments) {
  if (!wanted.image && wanted.in_channels != known.in_channels) {
    throw ValueError(fmt::format("{}: samples have {} channels or numbers, but the weights take {}",
                                 arguments.text("data"), wanted.in_channels.value_or(0),
                                 known.in_channels.value_or(0)));
  }
  if (wanted.image && !known.image) {
    throw ValueError(fmt::format("{}: the weights were trained on tensors, not on images: use tensors:FILE.safetensors",
                                 arguments.text("data")));
  }
  if (!wanted.image && known.image) {
    throw ValueError(
        fmt::format("{}: the weights were trained on images that were scaled to {} x {} and normalised: "
                    "use folder:DIR, or weights without russet's metadata",
                    arguments.text("data"), known.image->size, known.image->size));
  }
}

/// A card of a file of weights is kept, if the data fits it. What it only assumes of inputs, tensors tell; what a new
/// head is for, the data.
Card reconcile(Card known, const Card& wanted, const Arguments& arguments) {
  if (arguments.has("classes")) {
    known.num_classes = wanted.num_classes;
    known.class_names = wanted.class_names;
    known.regression = wanted.regression;
  }
  if (known.assumed && !wanted.image) {
    known.image.reset();
    known.image_size = wanted.image_size;
  }
  if (wanted.num_classes > known.num_classes || wanted.regression != known.regression) {
    throw ValueError(
        fmt::format("{} has {} {}, but the weights are for {} {}: russet train --classes {} makes a new head",
                    arguments.text("data"), wanted.num_classes, unit_of(wanted), known.num_classes, unit_of(known),
                    wanted.num_classes));
  }
  if (wanted.width && *wanted.width != known.width.value_or(1)) {
    throw ValueError(fmt::format("--width {}: the weights are those of a model of width {}", *wanted.width,
                                 known.width.value_or(1)));
  }
  if (known.assumed) known.config = wanted.config;
  if (wanted.config != known.config) throw ValueError("--config: the weights are those of a model of other sizes");
  if (arguments.has("image-size") && known.image && wanted.image && known.image->size != wanted.image->size) {
    throw ValueError(fmt::format("--image-size {}: the weights are those of a model for images of {} x {}",
                                 wanted.image->size, known.image->size, known.image->size));
  }
  require_inputs(known, wanted, arguments);
  known.assumed = false;
  if (wanted.text) known.text = wanted.text;
  return known;
}

/// The weights, but with the head that the model has now.
StateDict with_head_of(const models::Model& model, const StateDict& weights) {
  const std::string head = model.spec().head();
  StateDict state;
  for (const auto& [name, tensor] : weights) {
    if (!name.starts_with(head)) state.insert(name, tensor);
  }
  state.insert(model.state_dict().below(head), head);
  return state;
}

}  // namespace

models::ModelOptions Card::model_options(Device device) const {
  const models::ModelSpec& spec = models::find_model(model);
  models::ModelOptions options;
  options.num_classes = num_classes;
  options.width = width;
  options.config = config;
  options.device = device;
  if (spec.takes == models::InputKind::tokens) return options;
  options.in_channels = in_channels;
  if (!spec.any_image_size) options.image_size = image_size;
  return options;
}

train::Objective Card::objective() const {
  const models::ModelSpec& spec = models::find_model(model);
  if (spec.features != nullptr) return train::Objective::contrastive;
  if (spec.answers_tokens) return train::Objective::masked_tokens;
  return regression ? train::Objective::squared_error : train::Objective::cross_entropy;
}

data::Transforms views_of(const ImageForm& form) {
  const bool small = form.size < small_side;
  const double strength = small ? 0.5 : 1;
  std::vector<Transform> steps{data::Channels{form.channels}, data::RandomResizedCrop{form.size},
                               data::RandomHorizontalFlip{}};
  steps.emplace_back(data::ColorJitter{.brightness = 0.8 * strength,
                                       .contrast = 0.8 * strength,
                                       .saturation = 0.8 * strength,
                                       .hue = 0.2 * strength,
                                       .probability = 0.8});
  steps.emplace_back(data::RandomGrayscale{0.2});
  if (!small) steps.emplace_back(data::GaussianBlur{.kernel_size = form.size / 20 * 2 + 1, .probability = 0.5});
  steps.emplace_back(data::ToFloat{});
  steps.emplace_back(data::Normalize{form.mean, form.std});
  return data::Transforms(std::move(steps)).with_views(2);
}

data::Transforms transforms_of(const ImageForm& form, bool augment) {
  const bool small = form.size < small_side;
  std::vector<Transform> steps;
  steps.reserve(6);
  steps.emplace_back(data::Channels{form.channels});
  if (augment && !small) {
    steps.emplace_back(data::RandomResizedCrop{form.size});
  } else if (small) {
    steps.emplace_back(data::Resize{form.size, form.size});
    if (augment) steps.emplace_back(data::RandomCrop{form.size, form.size / 8});
  } else {
    steps.emplace_back(data::Resize{form.size * 8 / 7});
    steps.emplace_back(data::CenterCrop{form.size});
  }
  if (augment) steps.emplace_back(data::RandomHorizontalFlip{});
  steps.emplace_back(data::ToFloat{});
  steps.emplace_back(data::Normalize{form.mean, form.std});
  return data::Transforms(std::move(steps));
}

Task open_task(const Arguments& arguments, const std::optional<Card>& card) {
  Task task;
  models::find_model(arguments.text("model"));  // an unknown name is said before files are opened
  const Card wanted = new_card(arguments, card);
  data::Parts parts = open_parts(arguments, wanted);
  if (arguments.has("samples")) parts.train = data::first_samples(parts.train, arguments.integer("samples"));
  const double share = arguments.has("holdout") ? arguments.real("holdout") : 0;
  task.train = parts.train;
  task.test = parts.test;
  if (share > 0) {
    const data::Split halves = data::split(parts.train, share, static_cast<std::uint64_t>(arguments.integer("seed")));
    task.train = halves.kept;
    task.test = halves.held_out;
  }
  task.card = card_for(arguments, *parts.train, wanted);
  if (card) task.card = reconcile(*card, task.card, arguments);
  if (task.card.objective() == train::Objective::contrastive) {
    const data::Transforms plain = transforms_of(*task.card.image, false);
    task.bank = task.train->with(plain);
    task.train = task.train->with(views_of(*task.card.image));
    if (task.test) task.test = task.test->with(plain);
  } else if (task.card.image) {
    // Flipping a picture of a digit, or of a shape that is told by its sides, makes another class of it.
    const bool photographs =
        arguments.text("data").starts_with("folder:") || arguments.text("data").starts_with("cifar10:");
    const bool augment = arguments.text("augment") == "standard" && photographs && task.card.image->channels == 3;
    task.train = task.train->with(transforms_of(*task.card.image, augment));
    if (task.test) task.test = task.test->with(transforms_of(*task.card.image, false));
  }
  return task;
}

void load_weights(models::Model& model, const io::WeightsFile& file, Device device, Head head) {
  StateDict weights = file.tensors(device);
  if (model.spec().published != nullptr) weights = model.spec().published(weights);
  if (head == Head::replaced) weights = with_head_of(model, weights);
  try {
    model.load_state_dict(weights);
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("{}: {}", file.name(), error.what()));
  }
}

models::Model load_model(const Card& card, const io::WeightsFile& file, Device device) {
  models::Model model = models::get_model(card.model, card.model_options(device));
  load_weights(model, file, device);
  return model;
}

}  // namespace russet::app
