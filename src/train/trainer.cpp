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

#include "run.h"
#include "step.h"

namespace russet::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Losses stay on the device until this many steps have come together: reading waits for the device.
constexpr std::size_t steps_together = 16;

/// What a run writes into its folder; the checkpoint of an earlier run goes first.
constexpr std::string_view file_names[] = {"checkpoint", "best.safetensors", "model.safetensors", "report.html",
                                           "log.jsonl"};

}  // namespace

/// Steps whose losses have not been read.
struct Trainer::Run::Unread {
  struct Step {
    StepRecord record;
    std::vector<Tensor> losses;
    std::vector<std::int64_t> samples;
  };
  std::vector<Step> steps;
};

Trainer::Run::Run(RunState state, Task task, std::optional<io::Checkpoint> checkpoint, const std::string& name)
    : state_(std::move(state)), task_(std::move(task)), unread_(std::make_unique<Unread>()) {
  const Options& options = state_.options;
  if (options.memory) {
    planned_ = require_memory(options, task_, *options.memory);
    set_memory_limit(*options.memory);
  }
  manual_seed(static_cast<std::uint64_t>(*options.seed));
  models::ModelOptions model_options = task_.card.model_options(options.on());
  if (options.dropout) model_options.dropout = options.dropout;
  model_ = std::make_unique<models::Model>(models::get_model(options.model, model_options));
  if (options.weights && !checkpoint) load_weights(*options.weights);
  optimizer_ = optim::make_optimizer({*options.optimizer, *options.lr, *options.momentum, *options.weight_decay},
                                     model_->parameters());
  check_inputs();
  make_loaders();
  schedule_ = {*options.schedule, *options.lr, *options.warmup, total_steps()};
  if (checkpoint) {
    train::restore(*checkpoint, name, *model_, *optimizer_);
    loader_->restore(state_.loader);
  }
}

Trainer::Run::~Run() = default;

void Trainer::Run::load_weights(const std::string& path) {
  const io::SafetensorsFile file(path);
  try {
    model_->load_state_dict(file.tensors(state_.options.on()));
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("{}: {}", path, error.what()));
  }
}

/// Records a forward pass that never runs: shapes that do not fit are said before anything is written.
void Trainer::Run::check_inputs() {
  const NoGrad no_grad;
  const data::Field input = task_.train->input();
  Shape shape = input.shape;
  shape.insert(0, 1);
  model_->eval();
  forward(*model_, zeros(shape, {input.dtype, state_.options.on(), false}));
  model_->train();
}

void Trainer::Run::make_loaders() {
  const Options& options = state_.options;
  data::LoaderOptions loading;
  loading.batch = std::min(*options.batch, task_.train->size());
  loading.shuffle = *options.shuffle;
  loading.seed = static_cast<std::uint64_t>(*options.seed);
  loading.workers = static_cast<int>(std::clamp<std::int64_t>(*options.workers, -1, 256));
  loading.device = options.on();
  // A batch of one sample has no variance for batch norm to divide by.
  loading.drop_last = loading.batch > 1 && task_.train->size() % loading.batch == 1;
  loader_ = std::make_unique<data::DataLoader>(task_.train, loading);
  if (!task_.test) return;
  loading.batch = std::min(*options.batch, task_.test->size());
  loading.shuffle = false;
  loading.drop_last = false;
  test_loader_ = std::make_unique<data::DataLoader>(task_.test, loading);
}

std::int64_t Trainer::Run::steps_per_epoch() const {
  return (loader_->batches() + *state_.options.accumulate - 1) / *state_.options.accumulate;
}

std::int64_t Trainer::Run::total_steps() const {
  const Options& options = state_.options;
  return options.steps ? *options.steps : *options.epochs * steps_per_epoch();
}

void Trainer::Run::prepare_folder() {
  std::error_code error;
  std::filesystem::create_directories(out(), error);
  if (error) throw FileError(fmt::format("{}: {}", out().string(), error.message()));
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

Result Trainer::Run::run(const Hooks& hooks) {
  prepare_folder();
  log_ = std::make_unique<Log>(out() / "log.jsonl", state_.log_bytes);
  if (!resumed_) write_checkpoint();
  bool stopped = false;
  while (state_.step < total_steps() && !stopped) stopped = run_epoch(hooks);
  Result result;
  result.history_from(read_log(out() / "log.jsonl"));
  result.steps = state_.step;
  result.finished = state_.step >= total_steps();
  result.best_accuracy = task_.test && !task_.card.regression ? state_.best : std::nullopt;
  result.out = out();
  return result;
}

/// Runs to the end of the epoch, of the run, or until asked to stop: true then.
bool Trainer::Run::run_epoch(const Hooks& hooks) {
  const Options& options = state_.options;
  const auto start = Clock::now();
  const std::int64_t last = total_steps();
  Progress progress(last, state_.step, *options.accumulate * loader_->options().batch);
  auto before = Clock::now();
  while (state_.step < last) {
    take_step(before);
    if (progress.due()) {
      read_losses();
      progress.show(state_.step, label());
    }
    state_.loader = loader_->state();
    if (state_.loader.position == loader_->batches()) break;
    if (hooks.stop != nullptr && hooks.stop->load()) {
      progress.clear();
      read_losses();
      write_weights("model.safetensors");
      write_checkpoint();
      write_report();
      return true;
    }
    if (options.checkpoint_every && state_.step % *options.checkpoint_every == 0) {
      read_losses();
      write_checkpoint();
      before = Clock::now();
    }
  }
  progress.clear();
  finish_epoch(hooks, start);
  return hooks.stop != nullptr && hooks.stop->load();
}

/// One step of the optimizer. `before`: when the one before ended; set to this one's end.
void Trainer::Run::take_step(Clock::time_point& before) {
  const Options& options = state_.options;
  const std::int64_t left = loader_->batches() - loader_->state().position;
  const std::int64_t parts = std::min(*options.accumulate, left);
  const double lr = schedule_.at(state_.step);
  optimizer_->set_lr(lr);
  Unread::Step step;
  const auto add_part = [&](const data::Batch& batch) {
    Tensor loss;
    {
      const Autocast autocast(DType::bfloat16, options.lower_precision());
      loss = loss_of(task_.card, forward(*model_, batch.input), batch.target, *options.label_smoothing);
    }
    step.losses.push_back(loss.detach());
    step.samples.push_back(batch.input.size(0));
    add_gradients(loss, parts);
  };
  for (std::int64_t part = 1; part < parts; ++part) add_part(*loader_->next());
  const std::optional<data::Batch> last = loader_->next();
  finish_step(optimizer_.get(), *options.clip_grad, model_->parameters(), [&] { add_part(*last); });
  const auto now = Clock::now();
  step.record = {++state_.step, 0, lr, std::chrono::duration<double, std::milli>(now - before).count()};
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
  }
  unread_->steps.clear();
}

std::string Trainer::Run::label() const {
  const std::int64_t epochs = (total_steps() + steps_per_epoch() - 1) / steps_per_epoch();
  return fmt::format("epoch {}/{}  loss {:.4f}", state_.loader.epoch + 1, epochs, last_loss_);
}

void Trainer::Run::finish_epoch(const Hooks& hooks, Clock::time_point start) {
  read_losses();
  EpochRecord record;
  record.epoch = state_.loader.epoch + 1;
  record.loss = state_.loss_sum / static_cast<double>(std::max<std::int64_t>(state_.loss_samples, 1));
  if (test_loader_) {
    Progress progress(test_loader_->batches(), 0, test_loader_->options().batch);
    const Evaluation evaluation =
        evaluate(*model_, *test_loader_, task_.card, state_.options.lower_precision(), [&](std::int64_t done) {
          if (progress.due()) progress.show(done, "evaluating");
        });
    record.accuracy = evaluation.accuracy;
    record.test_loss = evaluation.loss;
  }
  log_->add(record);
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
  if (hooks.epoch) hooks.epoch(record, seconds_since(start));
  if (hooks.say && !std::isfinite(record.loss)) {
    hooks.say(fmt::format("the loss is {}: a lower --lr, --warmup or --clip-grad may help", record.loss));
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
  io::save_checkpoint(out() / "checkpoint", to_checkpoint(state_, *model_, *optimizer_));
}

void Trainer::Run::write_report() const {
  log_->flush();
  Report report;
  report.title = fmt::format("{} on {}", state_.options.model, state_.options.data);
  report.history = read_log(out() / "log.jsonl");
  visit_deciding(state_.options, [&](const char* name, const auto& field) {
    if constexpr (requires { field.has_value(); }) {
      if (field) report.facts.emplace_back(name, fmt::format("{}", *field));
    } else {
      report.facts.emplace_back(name, field);
    }
  });
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

Trainer::Trainer(const Options& options) {
  RunState state;
  state.options = with_defaults(options);
  state.threads = get_num_threads();
  state.version = version();
  std::optional<Card> card;
  models::find_model(state.options.model);
  if (options.weights) card = card_of(io::SafetensorsFile(*options.weights), options.model);
  Task task = open_task(state.options, card);
  if (state.options.out.empty()) state.options.out = new_folder(state.options.model);
  state.card = task.card;
  run_ = std::make_unique<Run>(std::move(state), std::move(task), std::nullopt, "");
}

Trainer::Trainer(const std::filesystem::path& folder, const Options& given) {
  const std::filesystem::path path = folder / "checkpoint";
  io::Checkpoint checkpoint = io::load_checkpoint(path);
  RunState state = state_of(checkpoint, path.string());
  const std::vector<std::string> differ = differences(given, state.options);
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
  state.options.workers = given.workers.value_or(-1);
  state.options.checkpoint_every = given.checkpoint_every;
  state.options.memory = given.memory;
  state.options.out = folder;
  if (state.options.on() != Device()) checkpoint = io::load_checkpoint(path, state.options.on());
  Task task = open_task(with_defaults(state.options), state.card);
  state.options = with_defaults(state.options);
  run_ = std::make_unique<Run>(std::move(state), std::move(task), std::move(checkpoint), path.string());
  run_->mark_resumed();
}

Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;

Result Trainer::run(const Hooks& hooks) { return run_->run(hooks); }
const Options& Trainer::options() const { return run_->options(); }
const Task& Trainer::task() const { return run_->task(); }
models::Model& Trainer::model() { return run_->model(); }
std::int64_t Trainer::step() const { return run_->step(); }
std::int64_t Trainer::steps() const { return run_->total_steps(); }
std::int64_t Trainer::steps_per_epoch() const { return run_->steps_per_epoch(); }
std::optional<std::uint64_t> Trainer::planned_bytes() const { return run_->planned(); }

}  // namespace russet::train
