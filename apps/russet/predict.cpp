// russet predict: classes of images, or outputs for a file of inputs.
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/io.h>
#include <russet/models.h>
#include <russet/runtime.h>
#include <russet/train.h>

#include <algorithm>
#include <memory>

#include "command.h"

namespace app {
namespace {

using russet::Tensor;
using russet::train::Card;

struct Arguments {
  std::string model;
  std::string weights;
  std::vector<std::string> images;
  std::string input;
  std::string output;
  std::string device = "cpu";
  std::string precision = "fp32";
  std::int64_t batch = 32;
  std::int64_t top = 3;
  bool json = false;
};

struct Network {
  Card card;
  russet::models::Model model;
  russet::Device device;
  bool lower = false;
};

Network load(const Arguments& arguments) {
  const russet::Device device = require_device(arguments.device);
  const bool lower = precision_type(arguments.precision) == russet::DType::bfloat16;
  russet::models::find_model(arguments.model);
  const russet::io::SafetensorsFile file(arguments.weights);
  const Card card = russet::train::card_of(file, arguments.model);
  Network network{card, russet::train::load_model(card, file, device), device, lower};
  network.model.eval();
  return network;
}

/// The image as the network was trained on it: [1, c, h, w].
Tensor read_image(const std::string& path, const russet::train::ImageForm& form, russet::Device device) {
  russet::io::Image image = russet::io::read_image(path, form.channels);
  const russet::data::Transforms transforms = russet::train::transforms_of(form, false);
  const russet::data::ImageSize size = transforms.result({image.height, image.width, image.channels});
  std::vector<std::byte> pixels(static_cast<std::size_t>(size.height * size.width * size.channels) * sizeof(float));
  russet::data::Random random(0, russet::data::Random::Purpose::augmentation);
  transforms.apply(image, size, pixels, random);
  return Tensor::from_bytes(pixels, {1, size.channels, size.height, size.width},
                            {russet::DType::float32, device, false});
}

std::string class_name(const Card& card, std::size_t number) {
  return number < card.class_names.size() ? card.class_names[number] : fmt::format("{}", number);
}

void print_classes(const std::string& path, const std::vector<float>& shares, const Card& card,
                   const Arguments& arguments) {
  std::vector<std::size_t> order(shares.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(std::max<std::int64_t>(arguments.top, 1))));
  if (arguments.json) {
    Json line{{"image", path}, {"class", class_name(card, order[0])}, {"probability", shares[order[0]]}};
    for (const std::size_t number : order) {
      line["top"].push_back({{"class", class_name(card, number)}, {"probability", shares[number]}});
    }
    return print_json(line);
  }
  fmt::print("{}:", path);
  for (const std::size_t number : order) fmt::print("  {} {:.1f} %", class_name(card, number), shares[number] * 100);
  fmt::print("\n");
}

void predict_images(Network& network, const Arguments& arguments) {
  if (!network.card.image) {
    throw russet::ValueError(fmt::format("{} was not trained on images: use --input", arguments.weights));
  }
  if (network.card.regression) throw russet::ValueError("the weights predict numbers, not classes: use --input");
  // All files are read before anything is printed: a damaged one is said at once.
  std::vector<Tensor> images;
  for (const std::string& path : arguments.images) {
    images.push_back(read_image(path, *network.card.image, network.device));
  }
  const russet::NoGrad no_grad;
  const russet::Autocast autocast(russet::DType::bfloat16, network.lower);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Tensor shares = russet::softmax(network.model.forward(images[i]).to(russet::DType::float32), 1);
    print_classes(arguments.images[i], shares.to_vector<float>(), network.card, arguments);
  }
}

/// The tensors of the input file by the names that the model gives; undefined where left out.
std::vector<Tensor> read_inputs(const russet::io::SafetensorsFile& file,
                                const std::vector<russet::models::Input>& wanted, russet::Device device) {
  std::vector<Tensor> inputs;
  for (const russet::models::Input& input : wanted) {
    const russet::io::SafetensorsEntry* entry = file.find(input.name);
    if (entry == nullptr && inputs.empty()) entry = file.find("x");
    if (entry == nullptr && input.required) {
      throw russet::FileError(fmt::format("{}: there is no tensor \"{}\"", file.name(), input.name));
    }
    Tensor tensor = entry == nullptr ? Tensor() : file.tensor(*entry, device);
    if (tensor.defined() && (tensor.dim() == 0 || tensor.size(0) == 0)) {
      throw russet::FileError(fmt::format("{}: \"{}\" holds no sample", file.name(), entry->name));
    }
    if (tensor.defined() && !inputs.empty() && tensor.size(0) != inputs.front().size(0)) {
      throw russet::FileError(fmt::format("{}: \"{}\" has {} rows and \"{}\" has {}", file.name(), entry->name,
                                          tensor.size(0), wanted.front().name, inputs.front().size(0)));
    }
    if (tensor.defined() && input.limit > 0) {
      const std::vector<std::int64_t> values = tensor.to_vector<std::int64_t>();
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      if (!values.empty() && (*low < 0 || *high >= input.limit)) {
        throw russet::FileError(fmt::format("{}: \"{}\" holds {}, outside 0 to {}", file.name(), entry->name,
                                            *low < 0 ? *low : *high, input.limit - 1));
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Tensor outputs_of(Network& network, const std::vector<Tensor>& inputs, std::int64_t batch) {
  const russet::NoGrad no_grad;
  const russet::Autocast autocast(russet::DType::bfloat16, network.lower);
  const std::int64_t rows = inputs.front().size(0);
  std::vector<Tensor> parts;
  for (std::int64_t row = 0; row < rows; row += batch) {
    std::vector<Tensor> part;
    for (const Tensor& input : inputs) {
      part.push_back(input.defined() ? input.narrow(0, row, std::min(batch, rows - row)) : Tensor());
    }
    const Tensor output =
        part.size() == 1 ? russet::train::forward(network.model, part[0]) : network.model.forward_all(part);
    parts.push_back(output.to(russet::DType::float32));
    russet::flush();
  }
  return parts.size() == 1 ? parts[0] : russet::cat(parts, 0);
}

void predict_tensors(Network& network, const Arguments& arguments) {
  const russet::io::SafetensorsFile file(arguments.input);
  const std::vector<Tensor> inputs = read_inputs(file, network.model.inputs(), network.device);
  const Tensor output = outputs_of(network, inputs, arguments.batch);
  russet::io::save_safetensors(arguments.output, russet::StateDict{{"y", output}});
  if (arguments.json) {
    print_json({{"output", arguments.output}, {"rows", output.size(0)}, {"columns", output.size(1)}});
  } else {
    fmt::print("{}: y, {}\n", arguments.output, to_string(output.sizes()));
  }
}

void run(const Arguments& arguments) {
  if (arguments.images.empty() == arguments.input.empty()) {
    throw russet::ValueError("predict: say either --image FILE... or --input X.safetensors --output Y.safetensors");
  }
  if (arguments.input.empty() != arguments.output.empty()) {
    throw russet::ValueError("predict: --input and --output go together");
  }
  if (arguments.batch < 1) throw russet::ValueError("--batch must be at least 1");
  Network network = load(arguments);
  if (arguments.input.empty()) {
    predict_images(network, arguments);
  } else {
    predict_tensors(network, arguments);
  }
}

}  // namespace

void add_predict(CLI::App& program) {
  CLI::App* command = program.add_subcommand("predict", "Classes of images, or outputs for a file of inputs");
  auto arguments = std::make_shared<Arguments>();
  add_model_option(*command, arguments->model);
  command->add_option("--weights", arguments->weights, "A safetensors file")->required();
  command->add_option("--image", arguments->images, "JPEG or PNG files");
  command->add_option("--input", arguments->input,
                      "A safetensors file with x, or for bert_base input_ids, attention_mask and token_type_ids");
  command->add_option("--output", arguments->output, "The safetensors file to write, with y");
  command->add_option("--batch", arguments->batch, "Samples in a batch")->capture_default_str();
  command->add_option("--top", arguments->top, "How many classes to print for an image")->capture_default_str();
  add_device_option(*command, arguments->device);
  add_precision_option(*command, arguments->precision);
  command->add_flag("--json", arguments->json, "A JSON line an image");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace app
