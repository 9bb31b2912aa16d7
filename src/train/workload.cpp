#include <fmt/format.h>
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/runtime.h>
#include <russet/train/evaluate.h>
#include <russet/train/step.h>
#include <russet/train/workload.h>

#include <algorithm>

namespace russet::train {
namespace {

Tensor made_up(const data::Field& field, std::int64_t batch, std::int64_t limit, Device device) {
  Shape shape = field.shape;
  shape.insert(0, batch);
  InferredOptions integers;
  integers.dtype = DType::int64;
  integers.device = device;
  if (is_integral(field.dtype)) return randint(0, std::max<std::int64_t>(limit, 1), shape, integers);
  return randn(shape, {DType::float32, device, false});
}

const Device null_device{DeviceType::null};

/// The null device's plans while this lives.
class Observation {
 public:
  explicit Observation(Forecast& forecast) {
    observe_plans(null_device, [&forecast](const PlanSummary& plan) {
      for (const StepInfo& step : plan.steps) {
        forecast.steps.push_back(step);
        forecast.bytes_moved += step.bytes;
        forecast.operations += step.operations;
      }
      forecast.arena_bytes = std::max(forecast.arena_bytes, plan.arena_bytes);
    });
  }
  ~Observation() { observe_plans(null_device, {}); }
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;
};

}  // namespace

Workload benchmark_workload(const std::string& model) {
  const models::ModelSpec& spec = models::find_model(model);
  const models::Benchmark& benchmark = spec.benchmark;
  Workload workload;
  workload.model = model;
  workload.options.num_classes = benchmark.num_classes;
  workload.batch = benchmark.batch;
  workload.optimizer = benchmark.optimizer;
  if (spec.answers_tokens) workload.objective = Objective::masked_tokens;
  if (!benchmark.optimizer) workload.objective = Objective::mean_output;
  return workload;
}

Workbench::Workbench(const Workload& workload, Device device)
    : workload_(workload),
      model_([&] {
        models::ModelOptions options = workload.options;
        options.device = device;
        return models::get_model(workload.model, options);
      }()),
      scaler_(scaler_for(workload.precision)) {
  const models::Input& first = model_.inputs().front();
  const data::Field input = workload.input.value_or(data::Field{first.dtype, first.shape});
  const Shape answers = workload.objective == Objective::masked_tokens ? input.shape : Shape{};
  const data::Field target = workload.target.value_or(data::Field{DType::int64, answers});
  batch_.input = made_up(input, workload.batch, first.limit, device);
  batch_.target = made_up(target, workload.batch, model_.num_classes(), device);
  if (workload.attention_mask) batch_.fields.emplace("attention_mask", made_up(input, workload.batch, 2, device));
  trained_ = workload.freeze_encoder ? freeze_encoder(model_) : model_.parameters();
  if (workload.optimizer) optimizer_ = optim::make_optimizer(*workload.optimizer, trained_);
  flush();
}

Tensor Workbench::loss(const data::Batch& batch) {
  const Autocast scope = autocast_to(workload_.precision);
  return loss_of(workload_.objective, forward(model_, batch), batch.target,
                 {.label_smoothing = workload_.label_smoothing});
}

Tensor Workbench::train_step() {
  if (!model_.is_training()) model_.train();
  const BatchParts parts(batch_, workload_.part.value_or(workload_.batch));
  Tensor value;
  const auto add_part = [&](const data::Batch& part, double share) {
    value = loss(part);
    add_gradients(value, share / static_cast<double>(workload_.accumulate), scaler_);
  };
  const std::int64_t count = workload_.accumulate * parts.count();
  for (std::int64_t i = 1; i < count; ++i) parts.with((i - 1) % parts.count(), add_part);
  finish_step(optimizer_.get(), scaler_, workload_.clip_grad, trained_,
              [&] { parts.with(parts.count() - 1, add_part); });
  return value.detach();
}

Tensor Workbench::eval_step() {
  if (model_.is_training()) model_.eval();
  const NoGrad no_grad;
  const Autocast scope = autocast_to(workload_.precision);
  Tensor output;
  BatchParts(batch_, workload_.part.value_or(workload_.batch)).with(0, [&](const data::Batch& part, double) {
    output = forward(model_, part);
  });
  mark();
  return output;
}

namespace {

void take_steps(const Workload& workload, Phase phase, Forecast& result) {
  Workbench bench(workload, null_device);
  if (phase != Phase::eval) {
    // The first step makes the optimizer's state; from the second on all steps are alike.
    bench.train_step();
    bench.train_step();
    const Observation observation(result);
    bench.train_step();
  }
  if (phase == Phase::eval) {
    const Tensor first = bench.eval_step();
    const Observation observation(result);
    const Tensor second = bench.eval_step();
  } else if (phase == Phase::both) {
    const Tensor output = bench.eval_step();
  }
}

}  // namespace

Forecast forecast(const Workload& workload, Device device, Phase phase, std::string_view chip,
                  std::optional<std::size_t> memory) {
  plan_null_as(device, chip);
  reset_peak_memory(null_device);
  const std::size_t before = memory_in_use(null_device);
  Forecast result;
  if (!memory) {
    take_steps(workload, phase, result);
    result.peak_bytes = peak_memory(null_device) - before;
    return result;
  }
  const MemoryLimit limit(before + *memory, null_device);
  try {
    take_steps(workload, phase, result);
    result.peak_bytes = peak_memory(null_device) - before;
  } catch (const OutOfMemoryError&) {
    result.fits = false;
    result.peak_bytes = memory_refused(null_device) - std::min(memory_refused(null_device), before);
  }
  return result;
}

}  // namespace russet::train
