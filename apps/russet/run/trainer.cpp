#include <fmt/format.h>
#include <fmt/ranges.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/io.h>
#include <russet/random.h>
#include <russet/runtime.h>
#include <russet/train.h>
#include <russet/version.h>

#include <algorithm>
#include <chrono>

#include "folder.h"
#include "run/defaults.h"
#include "run/memory.h"
#include "run/mixing.h"
#include "run/report.h"
#include "run/run.h"

namespace russet::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Seconds since 1970.
double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Losses stay on the device until this many steps have come together: reading waits for the device.
constexpr std::size_t steps_together = 16;
constexpr auto time_between_reports = std::chrono::milliseconds(200);

Head head_of(const Arguments& arguments) { return arguments.has("classes") ? Head::replaced : Head::loaded; }

/// What a run writes into its folder; the checkpoint of an earlier run goes first.
constexpr std::string_view file_names[] = {"checkpoint", "best.safetensors", "model.safetensors", "report.html",
                                           "log.jsonl"};

}  // namespace

/// Steps whose losses have not been read.
struct Trainer::Run::Unread {
  struct Step {
    StepRecord record;
    double wall_time = 0;
    std::vector<Tensor> losses;
    std::vector<std::int64_t> samples;
  };
  std::vector<Step> steps;
};

Trainer::Run::Run(RunState state, Task task, std::optional<io::Checkpoint> checkpoint, const std::string& name)
    : state_(std::move(state)),
      task_(std::move(task)),
      whole_step_([this](const std::vector<Tensor>&) {
        Tensor loss;
        train::finish_step(optimizer_.get(), scaler_, state_.arguments.real("clip-grad"), trained_, [&] {
          loss = loss_on(*whole_batch_);
          train::add_gradients(loss, 1, scaler_);
        });
        return std::vector{loss.detach()};
      }),
      unread_(std::make_unique<Unread>()) {
  const Arguments& arguments = state_.arguments;
  if (arguments.has("memory")) {
    memory_plan_ = plan_memory(arguments, task_, arguments.bytes("memory"));
    set_memory_limit(arguments.bytes("memory"));
  }
  manual_seed(static_cast<std::uint64_t>(arguments.integer("seed")));
  models::ModelOptions model_options = task_.card.model_options(device());
  if (arguments.has("dropout")) model_options.dropout = arguments.real("dropout");
  model_ = std::make_unique<models::Model>(models::get_model(arguments.text("model"), model_options));
  if (arguments.has("weights") && !checkpoint) {
    load_weights(*model_, io::WeightsFile(arguments.text("weights")), device(), head_of(arguments));
  }
  trained_ = arguments.has("freeze") ? train::freeze_encoder(*model_) : model_->parameters();
  optimizer_ = optim::make_optimizer(optimizer_of(arguments), trained_);
  scaler_ = train::scaler_for(precision());
  check_inputs();
  make_loaders();
  learning_rate_ = {arguments.text("schedule"), arguments.real("lr"), arguments.integer("warmup"), total_steps()};
  if (checkpoint) {
    app::restore(*checkpoint, name, *model_, *optimizer_, scaler_);
    loader_->restore(state_.loader);
  }
}

Trainer::Run::~Run() = default;

/// Records a forward pass that never runs: shapes that do not fit are said before anything is written.
void Trainer::Run::check_inputs() {
  const NoGrad no_grad;
  const data::Field input = task_.train->input();
  Shape shape = input.shape;
  shape.insert(0, 1);
  model_->eval();
  data::Batch batch;
  batch.input = zeros(shape, {input.dtype, device(), false});
  train::forward(*model_, batch);
  model_->train();
}

void Trainer::Run::make_loaders() {
  const Arguments& arguments = state_.arguments;
  data::LoaderOptions loading;
  loading.batch = std::min(arguments.integer("batch"), task_.train->size());
  loading.shuffle = arguments.flag("shuffle");
  loading.group_by_length = loading.shuffle;
  loading.seed = static_cast<std::uint64_t>(arguments.integer("seed"));
  loading.workers = workers_of(arguments);
  loading.device = device();
  // A batch of one sample has no variance for batch norm to divide by.
  loading.drop_last = loading.batch > 1 && task_.train->size() % loading.batch == 1;
  loading.mixing = mixing_of(arguments, task_);
  loader_ = std::make_unique<data::DataLoader>(task_.train, loading);
  if (!task_.test) return;
  loading.mixing = {};
  loading.batch = std::min(arguments.integer("batch"), task_.test->size());
  if (memory_plan_ && memory_plan_->part) loading.batch = std::min(loading.batch, *memory_plan_->part);
  loading.shuffle = loading.group_by_length = false;
  loading.drop_last = false;
  test_loader_ = std::make_unique<data::DataLoader>(task_.test, loading);
  if (task_.bank) bank_loader_ = std::make_unique<data::DataLoader>(task_.bank, loading);
}

train::LossOptions Trainer::Run::loss_options() const {
  train::LossOptions options{.label_smoothing = state_.arguments.real("label-smoothing")};
  if (state_.arguments.has("temperature")) options.temperature = state_.arguments.real("temperature");
  return options;
}

std::int64_t Trainer::Run::steps_per_epoch() const {
  const std::int64_t parts = state_.arguments.integer("accumulate");
  return (loader_->batches() + parts - 1) / parts;
}

std::int64_t Trainer::Run::total_steps() const {
  const Arguments& arguments = state_.arguments;
  return arguments.has("steps") ? arguments.integer("steps") : arguments.integer("epochs") * steps_per_epoch();
}

void Trainer::Run::prepare_folder() {
  make_folder(out());
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(out(), error)) {
    const std::string name = entry.path().filename().string();
    const auto* const ours = std::find_if(std::begin(file_names), std::end(file_names),
                                          [&](std::string_view file) { return name.starts_with(file); });
    if (ours == std::end(file_names)) continue;
    // What a killed run left beside a file, and, for a new run, the files of an earlier one.
    const bool unfinished = name.substr(ours->size()).starts_with(".part-");
    if (!unfinished && (resumed_ || name != *ours)) continue;
    std::filesystem::remove(entry.path(), error);
    if (error) throw FileError(fmt::format("{}: {}", entry.path().string(), error.message()));
  }
  if (error) throw FileError(fmt::format("{}: {}", out().string(), error.message()));
}

Result Trainer::Run::run(const Callbacks& callbacks) {
  if (state_.arguments.has("tensorboard")) {
    events_ = std::make_unique<EventFile>(state_.arguments.text("tensorboard"), state_.step + 1);
  }
  prepare_folder();
  log_ = std::make_unique<Log>(out() / "log.jsonl", state_.log_bytes);
  if (!resumed_) write_checkpoint();
  say_how_memory_is_kept(callbacks);
  bool stopped = false;
  while (state_.step < total_steps() && !stopped) stopped = run_epoch(callbacks);
  Result result;
  result.history_from(read_log(out() / "log.jsonl"));
  result.steps = state_.step;
  result.finished = state_.step >= total_steps();
  result.best_accuracy = task_.test && !task_.card.regression ? state_.best : std::nullopt;
  result.out = out();
  return result;
}

/// Runs to the end of the epoch, of the run, or until asked to stop: true then.
bool Trainer::Run::run_epoch(const Callbacks& callbacks) {
  const Arguments& arguments = state_.arguments;
  const auto start = Clock::now();
  const std::int64_t last = total_steps();
  auto before = Clock::now();
  while (state_.step < last) {
    take_step(before);
    report_progress(callbacks);
    state_.loader = loader_->state();
    if (state_.loader.position == loader_->batches()) break;
    if (callbacks.stop != nullptr && callbacks.stop->load()) {
      read_losses();
      write_weights("model.safetensors");
      write_checkpoint();
      write_report();
      return true;
    }
    if (arguments.has("checkpoint-every") && state_.step % arguments.integer("checkpoint-every") == 0) {
      read_losses();
      write_checkpoint();
      before = Clock::now();
    }
  }
  finish_epoch(callbacks, start);
  return callbacks.stop != nullptr && callbacks.stop->load();
}

train::BatchParts Trainer::Run::parts_of(data::Batch batch) const {
  const std::int64_t samples = batch.input.size(0);
  const bool whole = !memory_plan_ || !memory_plan_->part;
  return {std::move(batch), whole ? samples : *memory_plan_->part};
}

/// Says it if batches are computed in parts.
void Trainer::Run::say_how_memory_is_kept(const Callbacks& callbacks) const {
  if (!callbacks.say || !memory_plan_ || !memory_plan_->part) return;
  const auto state = model_->state_dict();
  const bool has_statistics =
      std::any_of(state.begin(), state.end(), [](const auto& entry) { return entry.first.ends_with("running_mean"); });
  callbacks.say(fmt::format("--memory {}: batches are computed in parts of at most {} samples{}",
                            format_size(state_.arguments.bytes("memory")), *memory_plan_->part,
                            has_statistics ? "; the statistics of batch norm are those of the parts" : ""));
}

Tensor Trainer::Run::loss_on(const data::Batch& batch) const {
  const Autocast scope = autocast_to(precision());
  return train::loss_of(task_.card.objective(), train::forward(*model_, batch), batch.target, loss_options());
}

/// A step on one batch that is not computed in parts, and its loss.
Tensor Trainer::Run::take_whole_step(const data::Batch& batch) {
  whole_batch_ = &batch;
  return whole_step_(batch.tensors()).front();
}

/// One step of the optimizer. `before`: when the one before ended; set to this one's end.
void Trainer::Run::take_step(Clock::time_point& before) {
  const Arguments& arguments = state_.arguments;
  const std::int64_t left = loader_->batches() - loader_->state().position;
  const std::int64_t batches = std::min(arguments.integer("accumulate"), left);
  const double lr = learning_rate_.at(state_.step);
  optimizer_->set_lr(lr);
  Unread::Step step;
  const auto add_part = [&](const data::Batch& batch, double share) {
    const Tensor loss = loss_on(batch);
    step.losses.push_back(loss.detach());
    step.samples.push_back(batch.input.size(0));
    train::add_gradients(loss, share / static_cast<double>(batches), scaler_);
  };
  for (std::int64_t batch = 1; batch < batches; ++batch) {
    const train::BatchParts parts = parts_of(*loader_->next());
    for (std::int64_t part = 0; part < parts.count(); ++part) parts.with(part, add_part);
  }
  const data::Batch batch = *loader_->next();
  const train::BatchParts parts = parts_of(batch);
  if (batches == 1 && parts.count() == 1) {
    step.losses.push_back(take_whole_step(batch));
    step.samples.push_back(batch.input.size(0));
  } else {
    const std::int64_t last = parts.count() - 1;
    for (std::int64_t part = 0; part < last; ++part) parts.with(part, add_part);
    train::finish_step(optimizer_.get(), scaler_, arguments.real("clip-grad"), trained_,
                       [&] { parts.with(last, add_part); });
  }
  const auto now = Clock::now();
  step.record = {++state_.step, 0, lr, std::chrono::duration<double, std::milli>(now - before).count()};
  step.wall_time = wall_time();
  before = now;
  unread_->steps.push_back(std::move(step));
  if (unread_->steps.size() >= steps_together) read_losses();
}

void Trainer::Run::read_losses() {
  for (Unread::Step& step : unread_->steps) {
    double sum = 0;
    std::int64_t samples = 0;
    for (std::size_t part = 0; part < step.losses.size(); ++part) {
      sum += step.losses[part].item() * static_cast<double>(step.samples[part]);
      samples += step.samples[part];
    }
    state_.loss_sum += sum;
    state_.loss_samples += samples;
    step.record.loss = sum / static_cast<double>(samples);
    last_loss_ = step.record.loss;
    log_->add(step.record);
    if (events_) events_->add(step.record, step.wall_time);
  }
  unread_->steps.clear();
  if (events_) events_->flush();
}

/// Reads the losses so far, a few times a second, if somebody wants to know.
void Trainer::Run::report_progress(const Callbacks& callbacks) {
  if (!callbacks.progress || Clock::now() - reported_ < time_between_reports) return;
  read_losses();
  reported_ = Clock::now();
  const std::int64_t per_epoch = steps_per_epoch();
  callbacks.progress({.epoch = state_.loader.epoch + 1,
                      .epochs = (total_steps() + per_epoch - 1) / per_epoch,
                      .done = state_.step,
                      .total = total_steps(),
                      .samples = state_.arguments.integer("accumulate") * loader_->options().batch,
                      .loss = last_loss_});
}

/// Loss and accuracy, or, of a model that learns without classes, the accuracy of its nearest neighbours.
void Trainer::Run::evaluate(const Callbacks& callbacks, EpochRecord& record) {
  const std::int64_t total = test_loader_->batches() + (bank_loader_ ? bank_loader_->batches() : 0);
  const auto progress = [&](std::int64_t done) {
    if (!callbacks.progress || Clock::now() - reported_ < time_between_reports) return;
    reported_ = Clock::now();
    callbacks.progress({.evaluating = true,
                        .epoch = record.epoch,
                        .done = done,
                        .total = total,
                        .samples = test_loader_->options().batch});
  };
  if (bank_loader_) {
    record.accuracy = train::neighbour_accuracy(*model_, *bank_loader_, *test_loader_, {{}, precision(), progress});
    return;
  }
  const train::Evaluation evaluation =
      train::evaluate(*model_, *test_loader_, {task_.card.objective(), precision(), progress});
  record.accuracy = evaluation.accuracy;
  record.test_loss = evaluation.loss;
}

void Trainer::Run::finish_epoch(const Callbacks& callbacks, Clock::time_point start) {
  read_losses();
  EpochRecord record;
  record.epoch = state_.loader.epoch + 1;
  record.loss = state_.loss_sum / static_cast<double>(std::max<std::int64_t>(state_.loss_samples, 1));
  if (test_loader_) evaluate(callbacks, record);
  log_->add(record);
  if (events_) {
    events_->add(record, state_.step, wall_time());
    events_->flush();
  }
  state_.loss_sum = 0;
  state_.loss_samples = 0;
  if (state_.loader.position == loader_->batches()) {
    loader_->next();  // closes the epoch
    state_.loader = loader_->state();
  }
  keep_best(record);
  write_weights("model.safetensors");
  write_checkpoint();
  write_report();
  if (callbacks.epoch) callbacks.epoch(record, seconds_since(start));
  if (callbacks.say && !std::isfinite(record.loss)) {
    callbacks.say(fmt::format("the loss is {}: a lower --lr, --warmup or --clip-grad may help", record.loss));
  }
}

void Trainer::Run::keep_best(const EpochRecord& record) {
  // Without an accuracy the smallest loss is the best.
  const double merit = record.accuracy ? *record.accuracy : -record.test_loss.value_or(record.loss);
  if (state_.best && !(merit > *state_.best)) return;
  state_.best = merit;
  write_weights("best.safetensors");
}

void Trainer::Run::write_weights(const char* name) const {
  io::save_safetensors(out() / name, model_->state_dict(), to_metadata(task_.card));
}

void Trainer::Run::write_checkpoint() {
  state_.log_bytes = log_->sync();
  io::save_checkpoint(out() / "checkpoint", to_checkpoint(state_, *model_, *optimizer_, scaler_));
}

void Trainer::Run::write_report() const {
  log_->flush();
  Report report;
  report.title = fmt::format("{} on {}", state_.arguments.text("model"), state_.arguments.text("data"));
  report.history = read_log(out() / "log.jsonl");
  report.facts = state_.arguments.remembered_values();
  report.facts.emplace_back("parameters", fmt::format("{}", model_->num_parameters()));
  report.facts.emplace_back("training samples", fmt::format("{}", task_.train->size()));
  if (task_.test) report.facts.emplace_back("evaluation samples", fmt::format("{}", task_.test->size()));
  report.facts.emplace_back("threads", fmt::format("{}", state_.threads));
  report.facts.emplace_back("russet", std::string(version()));
  io::write_file_atomically(out() / "report.html", to_html(report));
}

void Result::history_from(History history) {
  epochs = std::move(history.epochs);
  if (!epochs.empty()) accuracy = epochs.back().accuracy;
}

namespace {

std::filesystem::path new_folder(const std::string& model) {
  std::filesystem::path path = std::filesystem::path("runs") / model;
  for (int number = 2; std::filesystem::exists(path); ++number) {
    path = std::filesystem::path("runs") / fmt::format("{}-{}", model, number);
  }
  return path;
}

}  // namespace

Trainer::Trainer(const Arguments& arguments) {
  RunState state;
  state.arguments = with_recipe(arguments);
  state.threads = get_num_threads();
  state.version = version();
  const std::string model = arguments.text("model");
  std::optional<Card> card;
  if (arguments.has("weights")) card = card_of(io::WeightsFile(arguments.text("weights")), model, head_of(arguments));
  Task task = open_task(state.arguments, card);
  if (!arguments.has("out")) state.arguments.set("out", new_folder(model).string());
  state.card = task.card;
  run_ = std::make_unique<Run>(std::move(state), std::move(task), std::nullopt, "");
}

Trainer::Trainer(const std::filesystem::path& folder, const Arguments& given) {
  const std::filesystem::path path = folder / "checkpoint";
  io::Checkpoint checkpoint = io::load_checkpoint(path);
  RunState state = state_of(checkpoint, path.string());
  const std::vector<std::string> differ = given.differences(state.arguments);
  if (!differ.empty()) {
    throw ValueError(
        fmt::format("{} cannot be resumed with other options: {}", folder.string(), fmt::join(differ, ", ")));
  }
  if (state.threads != get_num_threads()) {
    throw ValueError(
        fmt::format("{} was trained with {} thread(s) and this process has {}: only the same number gives "
                    "the same bits. Set OMP_NUM_THREADS={}.",
                    folder.string(), state.threads, get_num_threads(), state.threads));
  }
  state.arguments = with_recipe(given.over(state.arguments));
  state.arguments.set("out", folder.string());
  const Device device(state.arguments.text("device"));
  if (device != Device()) checkpoint = io::load_checkpoint(path, device);
  Task task = open_task(state.arguments, state.card);
  run_ = std::make_unique<Run>(std::move(state), std::move(task), std::move(checkpoint), path.string());
  run_->mark_resumed();
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;

Result Trainer::run(const Callbacks& callbacks) { return run_->run(callbacks); }
const Arguments& Trainer::arguments() const { return run_->arguments(); }
const Task& Trainer::task() const { return run_->task(); }
models::Model& Trainer::model() { return run_->model(); }
std::int64_t Trainer::step() const { return run_->step(); }
std::int64_t Trainer::steps() const { return run_->total_steps(); }
std::int64_t Trainer::steps_per_epoch() const { return run_->steps_per_epoch(); }
const std::optional<MemoryPlan>& Trainer::memory_plan() const { return run_->memory_plan(); }

}  // namespace russet::app
