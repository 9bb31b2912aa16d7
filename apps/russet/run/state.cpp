#include "run/state.h"

#include <fmt/format.h>
#include <russet/error.h>
#include <russet/random.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace russet::app {
namespace {

using nlohmann::json;

constexpr DeviceType generator_types[] = {DeviceType::cpu, DeviceType::mps, DeviceType::cuda, DeviceType::reference};

json generators() {
  json object = json::object();
  for (const DeviceType type : generator_types) {
    const Generator::State state = default_generator(type).state();
    object[to_string(Device(type))] = {state.seed, state.offset};
  }
  return object;
}

void restore_generators(const json& object) {
  for (const DeviceType type : generator_types) {
    const json& state = object.at(to_string(Device(type)));
    default_generator(type).set_state({state.at(0).get<std::uint64_t>(), state.at(1).get<std::uint64_t>()});
  }
}

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw FileError(fmt::format("{}: it is no checkpoint of a training run: {}", name, what));
}

}  // namespace

io::Checkpoint to_checkpoint(const RunState& state, const nn::Module& model, const optim::Optimizer& optimizer,
                             const amp::GradScaler& scaler) {
  const optim::OptimizerState optimizer_state = optimizer.state_dict();
  io::Checkpoint checkpoint;
  checkpoint.tensors.insert(model.state_dict(), "model.");
  checkpoint.tensors.insert(optimizer_state.tensors, "optimizer.");
  json object{{"options", json::parse(state.arguments.to_json())},
              {"card", json::parse(to_metadata(state.card).at("russet"))},
              {"step", state.step},
              {"epoch", state.loader.epoch},
              {"position", state.loader.position},
              {"loss_sum", state.loss_sum},
              {"loss_samples", state.loss_samples},
              {"best", nullptr},
              {"log_bytes", state.log_bytes},
              {"threads", state.threads},
              {"version", state.version},
              {"generators", generators()},
              {"optimizer", optimizer_state.numbers},
              {"scaler", scaler.state_dict()}};
  if (state.best) object["best"] = *state.best;
  checkpoint.state = object.dump();
  return checkpoint;
}

RunState state_of(const io::Checkpoint& checkpoint, const std::string& name) {
  try {
    const json object = json::parse(checkpoint.state);
    RunState state;
    state.arguments = Arguments::from_json("train", object.at("options").dump());
    state.card = card_in({{"russet", object.at("card").dump()}}, name).value();
    state.step = object.at("step").get<std::int64_t>();
    state.loader = {object.at("epoch").get<std::int64_t>(), object.at("position").get<std::int64_t>()};
    // A loss that was not finite is null in JSON; its epoch's mean is not finite either.
    const json& sum = object.at("loss_sum");
    state.loss_sum = sum.is_null() ? std::numeric_limits<double>::quiet_NaN() : sum.get<double>();
    state.loss_samples = object.at("loss_samples").get<std::int64_t>();
    if (!object.at("best").is_null()) state.best = object["best"].get<double>();
    state.log_bytes = object.at("log_bytes").get<std::uint64_t>();
    state.threads = object.at("threads").get<int>();
    state.version = object.at("version").get<std::string>();
    return state;
  } catch (const json::exception& error) {
    refuse(name, error.what());
  }
}

void restore(const io::Checkpoint& checkpoint, const std::string& name, nn::Module& model, optim::Optimizer& optimizer,
             amp::GradScaler& scaler) {
  try {
    const json object = json::parse(checkpoint.state);
    optim::OptimizerState state;
    state.tensors = checkpoint.tensors.below("optimizer.");
    state.numbers = object.at("optimizer").get<std::map<std::string, double>>();
    model.load_state_dict(checkpoint.tensors.below("model."));
    optimizer.load_state_dict(state);
    if (scaler.is_enabled()) scaler.load_state_dict(object.at("scaler").get<std::map<std::string, double>>());
    restore_generators(object.at("generators"));
  } catch (const json::exception& error) {
    refuse(name, error.what());
  } catch (const ValueError& error) {
    throw FileError(fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace russet::app
