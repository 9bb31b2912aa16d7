#include "run/defaults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <russet/device.h>
#include <russet/error.h>
#include <russet/models/registry.h>

#include <algorithm>

namespace russet::app {

DType precision_type(std::string_view word) {
  if (word == "bf16") return DType::bfloat16;
  return word == "fp16" ? DType::float16 : DType::float32;
}

std::int64_t batch_of(const Arguments& arguments) {
  if (arguments.has("batch")) return arguments.integer("batch");
  return models::find_model(arguments.text("model")).recipe.batch;
}

int workers_of(const Arguments& arguments) {
  if (!arguments.has("workers")) return -1;
  return static_cast<int>(std::clamp<std::int64_t>(arguments.integer("workers"), -1, 256));
}

optim::OptimizerChoice optimizer_of(const Arguments& arguments) {
  return {.name = arguments.text("optimizer"),
          .lr = arguments.real("lr"),
          .momentum = arguments.real("momentum"),
          .weight_decay = arguments.real("weight-decay")};
}

Arguments with_recipe(Arguments arguments) {
  if (arguments.text("model").empty()) {
    throw ValueError(fmt::format("train: the model is missing: one of {}", fmt::join(models::list_models(), ", ")));
  }
  if (arguments.text("data").empty()) {
    throw ValueError(
        "train: --data is missing: shapes, mnist:DIR, cifar10:DIR, folder:DIR, tensors:FILE.safetensors, "
        "trec:FILE or text:FILE");
  }
  if (arguments.has("epochs") && arguments.has("steps")) {
    throw ValueError("--epochs and --steps: one of them says how long to train");
  }
  const models::Recipe& recipe = models::find_model(arguments.text("model")).recipe;
  if (!arguments.has("steps")) arguments.set_default("epochs", recipe.epochs);
  arguments.set_default("batch", recipe.batch);
  arguments.set_default("optimizer", recipe.optimizer.name);
  const std::string optimizer = arguments.text("optimizer");
  const optim::OptimizerChoice usual =
      optimizer == recipe.optimizer.name ? recipe.optimizer : optim::usual_choice(optimizer);
  arguments.set_default("lr", usual.lr);
  arguments.set_default("weight-decay", usual.weight_decay);
  arguments.set_default("warmup", recipe.warmup);
  arguments.set("device", to_string(Device(arguments.text("device"))));
  return arguments;
}

}  // namespace russet::app
