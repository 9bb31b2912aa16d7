// russet eval: loss and accuracy of weights on a data set.
#include <russet/io.h>
#include <russet/models.h>
#include <russet/train.h>

#include <memory>

#include "command.h"

namespace app {
namespace {

struct Arguments {
  russet::train::Options options;
  std::string device = "cpu";
  std::string precision = "fp32";
  std::string weights;
  bool json = false;
};

void run(const Arguments& arguments) {
  const russet::Device device = require_device(arguments.device);
  const bool lower = precision_type(arguments.precision) == russet::DType::bfloat16;
  russet::train::Options options = arguments.options;
  options.augment = "none";
  russet::models::find_model(options.model);
  const russet::io::SafetensorsFile file(arguments.weights);
  const russet::train::Card card = russet::train::card_of(file, options.model);
  options = russet::train::with_defaults(options);  // checks the numbers
  const russet::train::Task task = russet::train::open_task(options, card);
  russet::models::Model model = russet::train::load_model(task.card, file, device);
  russet::data::LoaderOptions loading;
  const auto dataset = task.test ? task.test : task.train;
  loading.batch = std::min<std::int64_t>(*options.batch, dataset->size());
  loading.workers = static_cast<int>(*options.workers);
  loading.device = device;
  russet::data::DataLoader loader(dataset, loading);
  russet::train::Progress progress(loader.batches(), 0, loading.batch);
  const auto result = russet::train::evaluate(model, loader, task.card, lower, [&](std::int64_t done) {
    if (progress.due()) progress.show(done, "evaluating");
  });
  progress.clear();
  if (arguments.json) {
    Json line{{"model", options.model},
              {"data", options.data},
              {"samples", result.samples},
              {"loss", result.loss},
              {"accuracy", nullptr}};
    if (result.accuracy) line["accuracy"] = *result.accuracy;
    return print_json(line);
  }
  fmt::print("{} samples: loss {:.4f}", result.samples, result.loss);
  if (result.accuracy) fmt::print(", accuracy {:.2f} %", *result.accuracy * 100);
  fmt::print("\n");
}

}  // namespace

void add_eval(CLI::App& program) {
  CLI::App* command = program.add_subcommand("eval", "Loss and accuracy of weights on a data set");
  auto arguments = std::make_shared<Arguments>();
  add_model_option(*command, arguments->options.model);
  command
      ->add_option("--data", arguments->options.data,
                   "shapes, mnist:DIR, folder:DIR or tensors:FILE.safetensors; the test part where there is one")
      ->required();
  command->add_option("--weights", arguments->weights, "A safetensors file")->required();
  command->add_option("--holdout", arguments->options.holdout, "Evaluate the share that train --holdout kept back");
  command->add_option("--seed", arguments->options.seed, "The seed by which it was chosen [0]");
  command->add_option("--batch", arguments->options.batch, "Samples in a batch [by model]");
  command->add_option("--workers", arguments->options.workers, "Threads that prepare batches");
  add_device_option(*command, arguments->device);
  add_precision_option(*command, arguments->precision);
  command->add_flag("--json", arguments->json, "A JSON line");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace app
