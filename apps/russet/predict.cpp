// russet predict: classes of images or texts, or outputs for a file of inputs.
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/io.h>
#include <russet/models.h>
#include <russet/runtime.h>
#include <russet/train.h>

#include <algorithm>

#include "command.h"
#include "run/defaults.h"
#include "run/model_config.h"
#include "run/task.h"
#include "run/text_data.h"

namespace russet::app {
namespace {

struct Network {
  Card card;
  models::Model model;
  Device device;
  DType precision = DType::float32;
};

Network load(const Arguments& arguments) {
  const Device device = require_device(arguments.text("device"));
  const DType precision = precision_type(arguments.text("precision"));
  models::find_model(arguments.text("model"));
  const io::WeightsFile file(arguments.text("weights"));
  Card card = card_of(file, arguments.text("model"));
  if (arguments.has("config")) {
    card.config = read_model_config(arguments.text("config"), models::find_model(card.model));
  }
  Network network{card, load_model(card, file, device), device, precision};
  network.model.eval();
  return network;
}

/// The image as the network was trained on it: [1, c, h, w].
Tensor read_image(const std::string& path, const ImageForm& form, Device device) {
  io::Image image = io::read_image(path, form.channels);
  const data::Transforms transforms = transforms_of(form, false);
  const data::ImageSize size = transforms.result({image.height, image.width, image.channels});
  std::vector<std::byte> pixels(static_cast<std::size_t>(size.height * size.width * size.channels) * sizeof(float));
  data::Random random(0, data::Random::Purpose::augmentation);
  transforms.apply(image, size, pixels, random);
  return Tensor::from_bytes(pixels, {1, size.channels, size.height, size.width}, {DType::float32, device, false});
}

std::string class_name(const Card& card, std::size_t number) {
  return number < card.class_names.size() ? card.class_names[number] : fmt::format("{}", number);
}

/// `kind`: what `name` names, image or text.
void print_classes(const char* kind, const std::string& name, const std::vector<float>& shares, const Card& card,
                   const Arguments& arguments) {
  std::vector<std::size_t> order(shares.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(arguments.integer("top"))));
  if (arguments.flag("json")) {
    Json line{{kind, name}, {"class", class_name(card, order[0])}, {"probability", shares[order[0]]}};
    for (const std::size_t number : order) {
      line["top"].push_back({{"class", class_name(card, number)}, {"probability", shares[number]}});
    }
    return print_json(line);
  }
  fmt::print("{}:", name);
  for (const std::size_t number : order) fmt::print("  {} {:.1f} %", class_name(card, number), shares[number] * 100);
  fmt::print("\n");
}

void predict_images(Network& network, const Arguments& arguments) {
  if (!network.card.image) {
    throw ValueError(fmt::format("{} was not trained on images: use --input", arguments.text("weights")));
  }
  if (network.card.regression) throw ValueError("the weights predict numbers, not classes: use --input");
  // All files are read before anything is printed: a damaged one is said at once.
  const std::vector<std::string> paths = arguments.texts("image");
  std::vector<Tensor> images;
  images.reserve(paths.size());
  for (const std::string& path : paths) {
    images.push_back(read_image(path, *network.card.image, network.device));
  }
  const NoGrad no_grad;
  const Autocast scope = autocast_to(network.precision);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Tensor shares = softmax(network.model.forward(images[i]).to(DType::float32), 1);
    print_classes("image", paths[i], shares.to_vector<float>(), network.card, arguments);
  }
}

/// The tokens of a vocabulary by id.
std::vector<std::string> words_of(const text::Tokenizer& tokenizer) {
  std::vector<std::string> words;
  for (std::int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    words.push_back(tokenizer.id_to_token(id).value_or(fmt::format("{}", id)));
  }
  return words;
}

/// The logits of each word that is masked. Throws ValueError if none is.
std::vector<Tensor> masked_rows(const Tensor& output, const std::vector<std::int64_t>& ids, const std::string& text,
                                const text::Tokenizer& tokenizer) {
  const std::optional<std::int64_t> mask = tokenizer.token_to_id("[MASK]");
  std::vector<Tensor> rows;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == mask) rows.push_back(output.select(0, 0).select(0, static_cast<std::int64_t>(i)));
  }
  if (rows.empty()) throw ValueError(fmt::format("\"{}\": put [MASK] where a word is to be told", text));
  return rows;
}

void predict_texts(Network& network, const Arguments& arguments) {
  if (models::find_model(network.card.model).takes != models::InputKind::tokens) {
    throw ValueError(fmt::format("{} does not take text", network.card.model));
  }
  if (network.card.regression) throw ValueError("the weights predict numbers, not classes: use --input");
  const TextForm form = network.card.text.value_or(TextForm{});
  const text::Tokenizer tokenizer = open_tokenizer(arguments, network.card);
  const bool masked = network.model.spec().answers_tokens;
  if (masked) network.card.class_names = words_of(tokenizer);
  const NoGrad no_grad;
  const Autocast scope = autocast_to(network.precision);
  for (const std::string& text : arguments.texts("text")) {
    const std::vector<std::int64_t> ids = ids_of(text, tokenizer, form);
    const Tensor input = Tensor::from(ids, {1, std::ssize(ids)}, network.device);
    const Tensor output = network.model.forward(input).to(DType::float32);
    for (const Tensor& row :
         masked ? masked_rows(output, ids, text, tokenizer) : std::vector<Tensor>{output.select(0, 0)}) {
      print_classes("text", text, softmax(row, 0).to_vector<float>(), network.card, arguments);
    }
  }
}

/// The tensors of the input file by the names that the model gives; undefined where left out.
std::vector<Tensor> read_inputs(const io::SafetensorsFile& file, const std::vector<models::Input>& wanted,
                                Device device) {
  std::vector<Tensor> inputs;
  for (const models::Input& input : wanted) {
    const io::SafetensorsEntry* entry = file.find(input.name);
    if (entry == nullptr && inputs.empty()) entry = file.find("x");
    if (entry == nullptr && input.required) {
      throw FileError(fmt::format("{}: there is no tensor \"{}\"", file.name(), input.name));
    }
    Tensor tensor = entry == nullptr ? Tensor() : file.tensor(*entry, device);
    if (tensor.defined() && (tensor.dim() == 0 || tensor.size(0) == 0)) {
      throw FileError(fmt::format("{}: \"{}\" holds no sample", file.name(), entry->name));
    }
    if (tensor.defined() && !inputs.empty() && tensor.size(0) != inputs.front().size(0)) {
      throw FileError(fmt::format("{}: \"{}\" has {} rows and \"{}\" has {}", file.name(), entry->name, tensor.size(0),
                                  wanted.front().name, inputs.front().size(0)));
    }
    if (tensor.defined() && input.limit > 0) {
      const std::vector<std::int64_t> values = tensor.to_vector<std::int64_t>();
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      if (!values.empty() && (*low < 0 || *high >= input.limit)) {
        throw FileError(fmt::format("{}: \"{}\" holds {}, outside 0 to {}", file.name(), entry->name,
                                    *low < 0 ? *low : *high, input.limit - 1));
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Tensor outputs_of(Network& network, const std::vector<Tensor>& inputs, std::int64_t batch) {
  const NoGrad no_grad;
  const Autocast scope = autocast_to(network.precision);
  const std::int64_t rows = inputs.front().size(0);
  std::vector<Tensor> parts;
  for (std::int64_t row = 0; row < rows; row += batch) {
    std::vector<Tensor> part;
    part.reserve(inputs.size());
    for (const Tensor& input : inputs) {
      part.push_back(input.defined() ? input.narrow(0, row, std::min(batch, rows - row)) : Tensor());
    }
    const Tensor output = part.size() == 1 ? train::forward(network.model, part[0]) : network.model.forward_all(part);
    parts.push_back(output.to(DType::float32));
    flush();
  }
  return parts.size() == 1 ? parts[0] : cat(parts, 0);
}

void predict_tensors(Network& network, const Arguments& arguments) {
  const io::SafetensorsFile file(arguments.text("input"));
  const std::vector<Tensor> inputs = read_inputs(file, network.model.inputs(), network.device);
  const Tensor output = outputs_of(network, inputs, arguments.integer("batch"));
  const std::string path = arguments.text("output");
  io::save_safetensors(path, StateDict{{"y", output}});
  if (arguments.flag("json")) {
    print_json({{"output", path}, {"rows", output.size(0)}, {"columns", output.size(1)}});
  } else {
    fmt::print("{}: y, {}\n", path, to_string(output.sizes()));
  }
}

}  // namespace

void run_predict(const Arguments& arguments) {
  const bool from_tensors = arguments.has("input");
  if (arguments.has("image") + arguments.has("text") + from_tensors != 1) {
    throw ValueError(
        "predict: say one of --image FILE..., --text TEXT..., and --input X.safetensors --output Y.safetensors");
  }
  if (arguments.has("output") != from_tensors) throw ValueError("predict: --input and --output go together");
  Network network = load(arguments);
  if (from_tensors) {
    predict_tensors(network, arguments);
  } else if (arguments.has("text")) {
    predict_texts(network, arguments);
  } else {
    predict_images(network, arguments);
  }
}

}  // namespace russet::app
