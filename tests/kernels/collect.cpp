#include "kernels/collect.h"

#include <russet/chips.h>
#include <russet/error.h>
#include <russet/functional.h>
#include <russet/models.h>
#include <russet/nn_functional.h>
#include <russet/train/workload.h>

#include <set>

#include "autograd/tape.h"
#include "conformance/cases.h"
#include "device/gpu/cuda/planning/properties.h"
#include "device/gpu/gpu_kernel.h"
#include "device/gpu/planning.h"
#include "device/gpu/target.h"
#include "runtime/engine.h"
#include "unit/group_fuzzer.h"

namespace russet::kernels {
namespace {

const Device null{DeviceType::null};

/// An Apple9 GPU: in that family products of different shapes share their launches.
constexpr std::string_view apple_chip = "m3-max";
constexpr std::string_view nvidia_chip = "h200";
constexpr std::string_view ampere_chip = "rtx-3090";

/// A driver that plans, and what kernels are made with for it.
class Planner {
 public:
  explicit Planner(gpu::Driver& driver) : driver_(driver), library_(driver), stream_(driver) {}
  const compile::Target& target() const { return driver_.target(); }
  const gpu::GpuContext& context() const { return context_; }

 private:
  gpu::Driver& driver_;
  gpu::Library library_;
  gpu::Stream stream_;
  gpu::GpuContext context_{library_, stream_, driver_.gpu_properties()};
};

gpu::Driver& registered_planner(DeviceType device, std::string_view chip) {
  return dynamic_cast<gpu::Driver&>(runtime::require_planner(Device(device), chip));
}

const Planner& planner_of(Gpu gpu) {
  static const Planner apple(registered_planner(DeviceType::mps, apple_chip));
  static const Planner nvidia(registered_planner(DeviceType::cuda, nvidia_chip));
  static const std::unique_ptr<gpu::Driver> alone =
      gpu::make_planning_driver(DeviceType::cuda, cuda::properties_of(chip_of(nvidia_chip, DeviceType::cuda)));
  static const Planner nvidia_without_libraries(*alone);
  static const Planner nvidia_ampere(registered_planner(DeviceType::cuda, ampere_chip));
  switch (gpu) {
    case Gpu::apple: return apple;
    case Gpu::nvidia: return nvidia;
    case Gpu::nvidia_without_libraries: return nvidia_without_libraries;
    case Gpu::nvidia_ampere: return nvidia_ampere;
  }
  throw InternalError("no such GPU");
}

/// Functions in the order in which they were met, each once.
class Collection {
 public:
  explicit Collection(const Planner& planner) : planner_(planner) {}
  void add(const compile::Kernel& kernel) {
    std::vector<gpu::FunctionPtr> found;
    gpu::collect_functions(kernel, found);
    for (gpu::FunctionPtr& function : found) add(std::move(function));
    add_cut_forms(kernel);
  }
  void add(gpu::FunctionPtr function) {
    if (function->source().text.empty()) return;  // a library's
    if (seen_.insert(function->name()).second) functions_.push_back(std::move(function));
  }
  std::vector<gpu::FunctionPtr> take() { return std::move(functions_); }

 private:
  /// What is cut is a shared launch: of pieces that share none otherwise that is a kernel of its own.
  void add_cut_forms(const compile::Kernel& kernel) {
    const auto* const gpu = dynamic_cast<const gpu::GpuKernel*>(&kernel);
    if (gpu == nullptr) return;
    for (const gpu::Call& call : gpu->calls()) {
      if (call.piece != nullptr && !call.piece->shares) add(gpu::shared_call({call}, planner_.context()).function);
    }
  }

  const Planner& planner_;
  std::set<std::string, std::less<>> seen_;
  std::vector<gpu::FunctionPtr> functions_;
};

void apply(const ops::OpRow& row, const conformance::Sample& sample, DType dtype, conformance::Layout layout) {
  std::vector<Tensor> x;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    x.push_back(conformance::make(sample.inputs[i], dtype, dtype, layout, static_cast<int>(i), null));
  }
  Tensor result;  // until the flush, or nothing would need it
  if (!x.empty()) result = autograd::apply_many(row.op, x, graph::NodeInfo(sample.given));
  flush();
}

}  // namespace

std::vector<gpu::FunctionPtr> functions_of_plans(Gpu gpu, const std::function<void()>& work) {
  Collection collection(planner_of(gpu));
  runtime::Engine& engine = runtime::engine_of(null);
  engine.set_target(planner_of(gpu).target());
  engine.set_observer([&](const compile::Plan& plan) {
    for (const auto& kernel : plan.kernels) collection.add(*kernel);
  });
  work();
  flush();
  engine.set_observer(nullptr);
  return collection.take();
}

std::vector<gpu::FunctionPtr> functions_of_models(Gpu gpu) {
  return functions_of_plans(gpu, [] {
    for (const std::string& model : models::list_models()) {
      for (const DType precision : {DType::float32, DType::bfloat16}) {
        train::Workload workload = train::benchmark_workload(model);
        workload.precision = precision;
        train::Workbench bench(workload, null);
        // The first step makes the optimizer's state; from the second on all steps are alike.
        for (int step = 0; step < 3; ++step) bench.train_step();
        for (int step = 0; step < 2; ++step) bench.eval_step();
      }
    }
  });
}

std::vector<gpu::FunctionPtr> functions_of_primitives(Gpu gpu) {
  return functions_of_plans(gpu, [] {
    for (const ops::OpRow& row : ops::table()) {
      for (int type = 0; type < dtype_count; ++type) {
        const auto dtype = static_cast<DType>(type);
        if (dtype == DType::float64) continue;
        for (const conformance::Sample& sample : conformance::samples(row, dtype)) {
          for (const conformance::Layout layout : conformance::layouts) apply(row, sample, dtype, layout);
        }
      }
    }
  });
}

std::vector<gpu::FunctionPtr> functions_of_random_groups(Gpu gpu) {
  const Planner& planner = planner_of(gpu);
  Collection collection(planner);
  constexpr unsigned groups = 120;
  for (unsigned seed = 0; seed < groups; ++seed) {
    collection.add(*planner.target().compile(test::Fuzzer(seed / 20 * 1000 + seed % 20, false).make().group));
  }
  return collection.take();
}

std::vector<gpu::FunctionPtr> all_functions(std::initializer_list<Gpu> gpus) {
  std::set<std::string, std::less<>> seen;
  std::vector<gpu::FunctionPtr> all;
  for (const Gpu gpu : gpus) {
    for (const auto& functions :
         {functions_of_models(gpu), functions_of_primitives(gpu), functions_of_random_groups(gpu)}) {
      for (const gpu::FunctionPtr& function : functions) {
        if (seen.insert(function->name()).second) all.push_back(function);
      }
    }
  }
  return all;
}

}  // namespace russet::kernels
