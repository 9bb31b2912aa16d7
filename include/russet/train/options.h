#pragma once
// What a training run is asked to do. What is left out follows from the model and the data.
#include <russet/device.h>
#include <russet/dtype.h>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace russet::train {

/// Words and numbers as on the command line: `russet train --help` describes them.
struct Options {
  std::string model;
  std::string data;
  std::optional<std::string> device{};
  std::optional<std::string> precision{};  // fp32, bf16
  std::optional<std::int64_t> epochs{};
  std::optional<std::int64_t> steps{};  // replaces epochs
  std::optional<std::int64_t> batch{};
  std::optional<std::int64_t> accumulate{};  // batches a step
  std::optional<std::string> optimizer{};    // sgd, adam, adamw
  std::optional<double> lr{};
  std::optional<double> momentum{};
  std::optional<double> weight_decay{};
  std::optional<std::string> schedule{};  // cosine, step, none
  std::optional<std::int64_t> warmup{};   // steps
  std::optional<double> clip_grad{};      // 0: no clipping
  std::optional<double> label_smoothing{};
  std::optional<double> dropout{};
  std::optional<double> width{};         // multiplies those of the model's hidden layers
  std::optional<std::string> augment{};  // standard, none
  std::optional<double> holdout{};       // 0: train on everything, evaluate nothing
  std::optional<std::int64_t> seed{};
  std::optional<bool> shuffle{};
  std::optional<std::string> weights{};  // to start from

  // What does not change the result.
  std::optional<std::int64_t> workers{};           // of the loader; negative: by the number of cores
  std::optional<std::int64_t> checkpoint_every{};  // steps; every epoch's end has one anyway
  std::optional<std::uint64_t> memory{};           // bytes
  std::filesystem::path out{};

  Device on() const { return Device(device.value_or("cpu")); }
  bool lower_precision() const { return precision == "bf16"; }
};

/// Calls visit(name on the command line, field) for each field that decides what a run computes.
template <class Self, class Visit>
void visit_deciding(Self& options, Visit&& visit) {
  visit("model", options.model);
  visit("data", options.data);
  visit("device", options.device);
  visit("precision", options.precision);
  visit("epochs", options.epochs);
  visit("steps", options.steps);
  visit("batch", options.batch);
  visit("accumulate", options.accumulate);
  visit("optimizer", options.optimizer);
  visit("lr", options.lr);
  visit("momentum", options.momentum);
  visit("weight-decay", options.weight_decay);
  visit("schedule", options.schedule);
  visit("warmup", options.warmup);
  visit("clip-grad", options.clip_grad);
  visit("label-smoothing", options.label_smoothing);
  visit("dropout", options.dropout);
  visit("width", options.width);
  visit("augment", options.augment);
  visit("holdout", options.holdout);
  visit("seed", options.seed);
  visit("shuffle", options.shuffle);
  visit("weights", options.weights);
}

/// Fills in what was left out, but for what the data decides (holdout). Throws ValueError, which names the option and
/// its choices, for what cannot be meant.
Options with_defaults(Options options);

/// The deciding options as a JSON object, and back. Throws FileError for a text that is none.
std::string to_json(const Options& options);
Options options_from_json(std::string_view text);

/// What to say about options that were given for a run that started with other ones: "--lr 0.1 (it was 0.05)", ...
/// Options that were left out, and an empty model or data, agree with everything.
std::vector<std::string> differences(const Options& given, const Options& started);

/// "2.5GiB", "512 MB", "1000": bytes. Throws ValueError.
std::uint64_t parse_size(std::string_view text);
/// "2.50 GiB".
std::string format_size(std::uint64_t bytes);

}  // namespace russet::train
