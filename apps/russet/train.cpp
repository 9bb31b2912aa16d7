// russet train: trains a model, and keeps log, weights, checkpoint and report in a folder.
#include <russet/train/neighbours.h>

#include <atomic>
#include <csignal>
#include <optional>

#include "command.h"
#include "progress.h"
#include "run/trainer.h"

namespace russet::app {
namespace {

std::atomic<bool> stop_asked{false};

/// The first signal asks the loop to stop after its step; a second one ends the process at once.
void ask_to_stop(int signal) {
  stop_asked.store(true);
  std::signal(signal, SIG_DFL);
}

Trainer make_trainer(const Arguments& arguments) {
  if (arguments.has("device")) require_device(arguments.text("device"));
  if (!arguments.has("resume")) return Trainer(arguments);
  const std::string folder = arguments.text("resume");
  if (arguments.has("out") && arguments.text("out") != folder) {
    throw ValueError("--resume DIR goes on in DIR: leave --out away");
  }
  return Trainer(folder, arguments);
}

std::string percent(double share) { return fmt::format("{:.2f} %", share * 100); }

void print_start(Trainer& trainer) {
  const Arguments& arguments = trainer.arguments();
  const Task& task = trainer.task();
  const bool words = task.card.objective() == train::Objective::masked_tokens;
  const std::string_view outputs = task.bank ? "numbers in a projection" : words ? "words" : "classes";
  fmt::print("{}: {} parameters, {} {}; {}: {} samples to train on", arguments.text("model"),
             trainer.model().num_parameters(), task.card.num_classes, outputs, arguments.text("data"),
             task.train->size());
  if (task.test) {
    fmt::print(", {} to evaluate", task.test->size());
  } else {
    fmt::print(", nothing is evaluated (--holdout 0.2 would keep a share for that)");
  }
  fmt::print("\n{} steps of {} samples on {} in {}, {} with learning rate {:g}\n", trainer.steps(),
             arguments.integer("batch") * arguments.integer("accumulate"), arguments.text("device"),
             arguments.text("precision"), arguments.text("optimizer"), arguments.real("lr"));
  if (task.bank && task.test) {
    fmt::print("the accuracy is that of the classes of the nearest {} training images, by the encoder's features\n",
               train::NeighbourOptions{}.neighbours);
  }
  if (const auto& plan = trainer.memory_plan()) {
    fmt::print("memory needed: {} of {}\n", format_size(plan->bytes), format_size(arguments.bytes("memory")));
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
  for (const auto& step : read_log(result.out / "log.jsonl").steps) losses.push_back(step.loss);
  if (losses.size() > 1) fmt::print("\nloss by step\n{}", draw_curve(losses, 64, 8));
  std::vector<double> accuracies;
  for (const EpochRecord& epoch : result.epochs) {
    if (epoch.accuracy) accuracies.push_back(*epoch.accuracy * 100);
  }
  if (accuracies.size() > 1) fmt::print("\naccuracy by epoch, %\n{}", draw_curve(accuracies, 64, 8));
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

/// The bar of an epoch, or of its evaluation.
class Bar {
 public:
  void show(const Position& at) {
    if (!progress_ || at.epoch != at_.epoch || at.evaluating != at_.evaluating) {
      clear();
      progress_.emplace(at.total, at.done, at.samples);
    }
    at_ = at;
    progress_->show(
        at.done, at.evaluating ? "evaluating" : fmt::format("epoch {}/{}  loss {:.4f}", at.epoch, at.epochs, at.loss));
  }
  void clear() { progress_.reset(); }

 private:
  std::optional<Progress> progress_;
  Position at_;
};

}  // namespace

void run_train(const Arguments& arguments) {
  const bool json = arguments.flag("json");
  Trainer trainer = make_trainer(arguments);
  if (!json) print_start(trainer);
  Bar bar;
  Callbacks callbacks;
  callbacks.stop = &stop_asked;
  callbacks.say = [&](const std::string& line) {
    bar.clear();
    fmt::print(stderr, "russet: {}\n", line);
  };
  if (is_terminal()) callbacks.progress = [&](const Position& at) { bar.show(at); };
  callbacks.epoch = [&](const EpochRecord& record, double seconds) {
    bar.clear();
    if (json) {
      print_json(to_json(record, seconds));
    } else {
      print_epoch(record, seconds);
    }
  };
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  const Result result = trainer.run(callbacks);
  bar.clear();
  if (json) return print_end_json(result);
  if (result.finished) return print_end(result);
  fmt::print("stopped behind step {}; to go on: russet train --resume {}\n", result.steps, result.out.string());
}

}  // namespace russet::app
