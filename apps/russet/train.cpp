// russet train: trains a model, and keeps log, weights, checkpoint and report in a folder.
#include <russet/models.h>
#include <russet/train.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>

#include "command.h"

namespace app {
namespace {

using russet::train::EpochRecord;
using russet::train::Options;
using russet::train::Result;
using russet::train::Trainer;

std::atomic<bool> stop_asked{false};

/// The first signal asks the loop to stop after its step; a second one ends the process at once.
void ask_to_stop(int signal) {
  stop_asked.store(true);
  std::signal(signal, SIG_DFL);
}

struct Arguments {
  Options options;
  std::string memory;
  std::string resume;
  std::string out;
  bool no_shuffle = false;
  bool json = false;
};

void add_options(CLI::App& command, Arguments& arguments) {
  Options& o = arguments.options;
  command.add_option("MODEL", o.model, "One of " + join(russet::models::list_models()));
  command.add_option("--data", o.data,
                     "shapes, mnist:DIR, folder:DIR (train/ and test/ inside, or --holdout), or "
                     "tensors:FILE.safetensors (tensors x and y)");
  command.add_option("--device", o.device, "The device (russet devices lists them) [cpu]");
  command.add_option("--precision", o.precision, "fp32, or bf16: matrix work in bfloat16 [fp32]");
  CLI::Option* epochs = command.add_option("--epochs", o.epochs, "How often to go through the data [by model]");
  command.add_option("--steps", o.steps, "How many steps to train, instead of --epochs")->excludes(epochs);
  command.add_option("--batch", o.batch, "Samples in a batch [by model]");
  command.add_option("--accumulate", o.accumulate, "Batches in a step of the optimizer [1]");
  command.add_option("--optimizer", o.optimizer, "sgd, adam or adamw [by model]");
  command.add_option("--lr", o.lr, "The learning rate [by model and optimizer]");
  command.add_option("--momentum", o.momentum, "The momentum of sgd [0.9]");
  command.add_option("--weight-decay", o.weight_decay, "The weight decay [by model]");
  command.add_option("--schedule", o.schedule, "cosine, step or none [cosine]");
  command.add_option("--warmup", o.warmup, "Steps in which the learning rate grows to its full size [by model]");
  command.add_option("--clip-grad", o.clip_grad, "The largest norm of all gradients together; 0: any [0]");
  command.add_option("--label-smoothing", o.label_smoothing, "The share of a target spread over all classes [0]");
  command.add_option("--dropout", o.dropout, "The probability of dropout [the model's own]");
  command.add_option("--width", o.width, "Multiplies the widths of the model's hidden layers, such as 0.125 [1]");
  command.add_option("--augment", o.augment, "standard: random crops and flips of folder: data; or none [standard]");
  command.add_option("--holdout", o.holdout, "The share of the training data that is kept for evaluation, by seed [0]");
  command.add_option("--seed", o.seed, "The seed of all that is random [0]");
  command.add_option("--workers", o.workers, "Threads that prepare batches [by the number of cores]");
  command.add_flag("--no-shuffle", arguments.no_shuffle, "Go through the data in its own order");
  command.add_option("--weights", o.weights, "Weights to start from, a safetensors file");
  command.add_option("--out", arguments.out, "The folder of the run; an earlier run there is replaced [runs/MODEL]");
  command.add_option("--resume", arguments.resume, "Go on with the run in this folder; its options hold");
  command.add_option("--checkpoint-every", o.checkpoint_every, "Steps between checkpoints [an epoch]");
  command.add_option("--memory", arguments.memory,
                     "Refuse to start if more memory would be needed on the device, such as 2.5GiB");
  command.add_flag("--json", arguments.json, "A JSON line an epoch, and one at the end");
}

Trainer make_trainer(const Arguments& arguments) {
  Options options = arguments.options;
  if (!arguments.memory.empty()) options.memory = russet::train::parse_size(arguments.memory);
  if (arguments.no_shuffle) options.shuffle = false;
  if (options.device) require_device(*options.device);
  if (!arguments.resume.empty()) {
    if (!arguments.out.empty() && arguments.out != arguments.resume) {
      throw russet::ValueError("--resume DIR goes on in DIR: leave --out away");
    }
    return Trainer(arguments.resume, options);
  }
  if (options.model.empty()) {
    throw russet::ValueError("train: the model is missing: one of " + join(russet::models::list_models()));
  }
  if (options.data.empty()) {
    throw russet::ValueError("train: --data is missing: shapes, mnist:DIR, folder:DIR or tensors:FILE.safetensors");
  }
  options.out = arguments.out;
  return Trainer(options);
}

std::string percent(double share) { return fmt::format("{:.2f} %", share * 100); }

void print_start(Trainer& trainer) {
  const Options& options = trainer.options();
  const auto& task = trainer.task();
  fmt::print("{}: {} parameters, {} classes; {}: {} samples to train on", options.model,
             trainer.model().num_parameters(), task.card.num_classes, options.data, task.train->size());
  if (task.test) {
    fmt::print(", {} to evaluate", task.test->size());
  } else {
    fmt::print(", nothing is evaluated (--holdout 0.2 would keep a share for that)");
  }
  fmt::print("\n{} steps of {} samples on {} in {}, {} with learning rate {:g}\n", trainer.steps(),
             *options.batch * *options.accumulate, *options.device, *options.precision, *options.optimizer,
             *options.lr);
  if (const auto planned = trainer.planned_bytes()) {
    fmt::print("memory needed: {} of {}\n", russet::train::format_size(*planned),
               russet::train::format_size(*options.memory));
  }
  if (trainer.step() > 0) fmt::print("going on behind step {}\n", trainer.step());
  std::fflush(stdout);
}

void print_epoch(const EpochRecord& record, double seconds) {
  fmt::print("epoch {}: loss {:.4f}", record.epoch, record.loss);
  if (record.test_loss) fmt::print(", on the evaluation part {:.4f}", *record.test_loss);
  if (record.accuracy) fmt::print(", accuracy {}", percent(*record.accuracy));
  fmt::print(" ({:.1f} s)\n", seconds);
  std::fflush(stdout);
}

Json to_json(const EpochRecord& record, double seconds) {
  Json line{{"epoch", record.epoch}, {"loss", record.loss}, {"accuracy", nullptr}, {"seconds", seconds}};
  if (record.accuracy) line["accuracy"] = *record.accuracy;
  if (record.test_loss) line["test_loss"] = *record.test_loss;
  return line;
}

void print_end(const Result& result) {
  std::vector<double> losses;
  for (const auto& step : russet::train::read_log(result.out / "log.jsonl").steps) losses.push_back(step.loss);
  if (losses.size() > 1) fmt::print("\nloss by step\n{}", russet::train::draw_curve(losses, 64, 8));
  std::vector<double> accuracies;
  for (const EpochRecord& epoch : result.epochs) {
    if (epoch.accuracy) accuracies.push_back(*epoch.accuracy * 100);
  }
  if (accuracies.size() > 1) fmt::print("\naccuracy by epoch, %\n{}", russet::train::draw_curve(accuracies, 64, 8));
  fmt::print("\n");
  if (result.accuracy)
    fmt::print("accuracy    {} (best {})\n", percent(*result.accuracy), percent(*result.best_accuracy));
  fmt::print("report      {}\ncheckpoint  {}\nweights     {}\n", (result.out / "report.html").string(),
             (result.out / "checkpoint").string(), (result.out / "model.safetensors").string());
}

void print_end_json(const Result& result) {
  Json line{{"steps", result.steps},
            {"finished", result.finished},
            {"accuracy", nullptr},
            {"best_accuracy", nullptr},
            {"out", result.out.string()}};
  if (result.accuracy) line["accuracy"] = *result.accuracy;
  if (result.best_accuracy) line["best_accuracy"] = *result.best_accuracy;
  print_json(line);
}

void run(const Arguments& arguments) {
  Trainer trainer = make_trainer(arguments);
  if (!arguments.json) print_start(trainer);
  russet::train::Hooks hooks;
  hooks.stop = &stop_asked;
  hooks.say = [](const std::string& line) { fmt::print(stderr, "russet: {}\n", line); };
  hooks.epoch = [&](const EpochRecord& record, double seconds) {
    if (arguments.json) {
      print_json(to_json(record, seconds));
    } else {
      print_epoch(record, seconds);
    }
  };
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  const Result result = trainer.run(hooks);
  if (arguments.json) return print_end_json(result);
  if (result.finished) return print_end(result);
  fmt::print("stopped behind step {}; to go on: russet train --resume {}\n", result.steps, result.out.string());
}

}  // namespace

void add_train(CLI::App& program) {
  CLI::App* command = program.add_subcommand("train", "Train a model");
  auto arguments = std::make_shared<Arguments>();
  add_options(*command, *arguments);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace app
