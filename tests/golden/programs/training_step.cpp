// One step of training on given weights and inputs: golden_training_step MODEL WEIGHTS INPUTS OUTPUT, all safetensors.
// INPUTS holds the model's inputs by their names, and the classes as "labels", [n], or [n, length] for masked words,
// unless the model learns from views of images, whose loss is NT-Xent then. Nothing is dropped. OUTPUT gets the loss,
// as "loss", and each parameter's gradient by its name. scripts/golden/compare_models.py compares them with PyTorch's.
#include <fmt/format.h>
#include <russet/autograd.h>
#include <russet/io.h>
#include <russet/models.h>
#include <russet/runtime.h>
#include <russet/train.h>

#include <cstdio>
#include <exception>

namespace {

using russet::StateDict;
using russet::Tensor;
namespace models = russet::models;
namespace train = russet::train;

models::Model make(const char* name, const StateDict& inputs) {
  models::ModelOptions options{.dropout = 0};
  if (models::find_model(name).takes == models::InputKind::images) options.image_size = inputs.at("x").size(-1);
  return models::get_model(name, options);
}

std::vector<Tensor> inputs_of(const models::Model& model, const StateDict& given) {
  std::vector<Tensor> inputs;
  for (const models::Input& input : model.inputs()) inputs.push_back(given.at(input.name));
  return inputs;
}

train::Objective objective_of(const StateDict& given) {
  if (!given.contains("labels")) return train::Objective::contrastive;
  return given.at("labels").dim() == 1 ? train::Objective::cross_entropy : train::Objective::masked_tokens;
}

void run(const char* name, const char* weights, const char* inputs, const char* output) {
  const StateDict given = russet::io::load_safetensors(inputs);
  models::Model model = make(name, given);
  model.load_state_dict(russet::io::load_safetensors(weights));
  model.train();
  const train::Objective objective = objective_of(given);
  Tensor loss;
  russet::in_one_plan([&] {
    const Tensor outputs = model.forward_all(inputs_of(model, given));
    loss = train::loss_of(objective, outputs, given.contains("labels") ? given.at("labels") : Tensor());
    loss.backward();
  });
  StateDict results{{"loss", loss.detach()}};
  for (const auto& [parameter_name, parameter] : model.named_parameters()) {
    if (parameter.grad().defined()) results.insert(parameter_name, parameter.grad());
  }
  russet::io::save_safetensors(output, results);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    fmt::print(stderr, "usage: golden_training_step MODEL WEIGHTS INPUTS OUTPUT\n");
    return 2;
  }
  try {
    run(arguments[1], arguments[2], arguments[3], arguments[4]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
