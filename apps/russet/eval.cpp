// russet eval: loss and accuracy of weights on a data set; of models that learn without classes, the accuracy of
// nearest neighbours among the training images.
#include <russet/io.h>
#include <russet/models.h>
#include <russet/train.h>

#include "command.h"
#include "progress.h"
#include "run/defaults.h"
#include "run/task.h"

namespace russet::app {

void run_eval(const Arguments& arguments) {
  const Device device = require_device(arguments.text("device"));
  const std::string name = arguments.text("model");
  models::find_model(name);
  const io::WeightsFile file(arguments.text("weights"));
  const Task task = open_task(arguments, card_of(file, name));
  models::Model model = load_model(task.card, file, device);
  if (task.bank && !task.test) {
    throw ValueError(fmt::format("{}: there is nothing to evaluate beside the training images: --holdout keeps a share",
                                 arguments.text("data")));
  }
  const auto dataset = task.test ? task.test : task.train;
  data::LoaderOptions loading;
  loading.batch = std::min(batch_of(arguments), dataset->size());
  loading.workers = workers_of(arguments);
  loading.device = device;
  data::DataLoader loader(dataset, loading);
  Progress progress(loader.batches(), 0, loading.batch);
  const auto show = [&](std::int64_t done) {
    if (progress.due()) progress.show(done, "evaluating");
  };
  const DType precision = precision_type(arguments.text("precision"));
  train::Evaluation result;
  if (task.bank) {
    data::DataLoader bank(task.bank, loading);
    result.accuracy = train::neighbour_accuracy(model, bank, loader, {{}, precision, show});
    result.samples = loader.samples();
  } else {
    result = train::evaluate(model, loader, {task.card.objective(), precision, show});
  }
  progress.clear();
  if (arguments.flag("json")) {
    Json line{{"model", name},
              {"data", arguments.text("data")},
              {"samples", result.samples},
              {"loss", nullptr},
              {"accuracy", nullptr}};
    if (!task.bank) line["loss"] = result.loss;
    if (result.accuracy) line["accuracy"] = *result.accuracy;
    return print_json(line);
  }
  fmt::print("{} samples:", result.samples);
  if (!task.bank) fmt::print(" loss {:.4f}", result.loss);
  if (result.accuracy) fmt::print("{} accuracy {:.2f} %", task.bank ? "" : ",", *result.accuracy * 100);
  fmt::print("\n");
}

}  // namespace russet::app
