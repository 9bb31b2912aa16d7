// Optimizers, averaged models and gradient clipping against PyTorch.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/autograd.h>
#include <russet/functional.h>
#include <russet/nn.h>
#include <russet/optim.h>

#include <limits>
#include <map>
#include <memory>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::DType;
using russet::Tensor;
namespace optim = russet::optim;

const Json& file() {
  static const Json json = read_json("optimizers.json.gz");
  return json;
}

Tensor drawn(std::uint64_t offset, const russet::Shape& shape, DType dtype, double low = -1) {
  return real(file().at("seed"), offset, shape, low, 1, dtype);
}

std::vector<Tensor> parameters(const Json& shapes, DType dtype) {
  std::vector<Tensor> made;
  for (const Json& shape : shapes) made.push_back(drawn(made.size(), shape_of(shape), dtype).requires_grad_());
  return made;
}

void set_gradients(const std::vector<Tensor>& parameters, std::uint64_t step) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].set_grad(drawn(1000 + 10 * step + i, parameters[i].sizes(), parameters[i].dtype()));
  }
}

template <class Number>
void set(Number& option, const Json& given) {
  option = given.get<Number>();
}
void set(std::optional<double>& option, const Json& given) {
  option = given.is_null() ? std::nullopt : std::optional<double>(given.get<double>());
}
void set(std::optional<std::int64_t>& option, const Json& given) { option = given.get<std::int64_t>(); }
template <class First, class Second>
void set(std::pair<First, Second>& option, const Json& given) {
  set(option.first, given.at(0));
  set(option.second, given.at(1));
}
void set(optim::AdjustLr& option, const Json& given) {
  ASSERT_EQ(given, "match_rms_adamw");
  option = optim::AdjustLr::match_rms_adamw;
}
void set(optim::LineSearch& option, const Json& given) {
  ASSERT_EQ(given, "strong_wolfe");
  option = optim::LineSearch::strong_wolfe;
}

/// `options` with those that the record has.
template <class Options>
Options with(Options options, const Json& given) {
  std::size_t known = 0;
  Options::each(options, [&](const char* name, auto& option, optim::Range = optim::Range::any) {
    if (!given.contains(name)) return;
    set(option, given.at(name));
    ++known;
  });
  EXPECT_EQ(known, given.size()) << given.dump();
  return options;
}

/// Over two groups: the first two parameters and the others, with options of their own.
template <class Made, class Options>
std::unique_ptr<optim::Optimizer> make(const Json& record, const std::vector<Tensor>& parameters) {
  const Options shared = with(Options{}, record.at("options"));
  const std::vector<optim::ParamGroup<Options>> groups{
      {{parameters.begin(), parameters.begin() + 2}, shared},
      {{parameters.begin() + 2, parameters.end()}, with(shared, record.at("second"))}};
  return std::make_unique<Made>(groups);
}

using Make = std::unique_ptr<optim::Optimizer> (*)(const Json&, const std::vector<Tensor>&);
const std::map<std::string, Make> optimizers{
    {"adadelta", &make<optim::Adadelta, optim::AdadeltaOptions>},
    {"adafactor", &make<optim::Adafactor, optim::AdafactorOptions>},
    {"adagrad", &make<optim::Adagrad, optim::AdagradOptions>},
    {"adam", &make<optim::Adam, optim::AdamOptions>},
    {"adamax", &make<optim::Adamax, optim::AdamaxOptions>},
    {"adamw", &make<optim::AdamW, optim::AdamWOptions>},
    {"asgd", &make<optim::ASGD, optim::ASGDOptions>},
    {"lars", &make<optim::LARS, optim::LARSOptions>},
    {"muon", &make<optim::Muon, optim::MuonOptions>},
    {"nadam", &make<optim::NAdam, optim::NAdamOptions>},
    {"radam", &make<optim::RAdam, optim::RAdamOptions>},
    {"rmsprop", &make<optim::RMSprop, optim::RMSpropOptions>},
    {"rprop", &make<optim::Rprop, optim::RpropOptions>},
    {"sgd", &make<optim::SGD, optim::SGDOptions>},
};

/// Of the largest number. Muon computes in bfloat16, where rounding makes up to a tenth of an update on both sides;
/// here ten updates move a parameter by 0.2 and more.
double tolerance_of(const std::string& name, DType dtype) {
  if (name == "muon") return 1e-2;
  return dtype == DType::float64 ? 1e-10 : 1e-5;
}

TEST(Optimizers, TakeTheStepsOfPyTorch) {
  std::map<std::string, int> seen;
  for (const Json& record : file().at("optimizers")) {
    const std::string name = record.at("optimizer");
    ++seen[name];
    for (const DType dtype : {DType::float64, DType::float32}) {
      SCOPED_TRACE(fmt::format("{} {} {} in {}", name, record.at("options").dump(), record.at("second").dump(),
                               russet::name_of(dtype)));
      const std::vector<Tensor> made = parameters(file().at(name == "muon" ? "matrices" : "shapes"), dtype);
      const auto optimizer = optimizers.at(name)(record, made);
      for (std::size_t step = 0; step < record.at("values").size(); ++step) {
        set_gradients(made, step);
        optimizer->step();
        const Json& expected = record.at("values")[step];
        for (std::size_t i = 0; i < expected.size(); ++i) {
          EXPECT_EQ(difference(made[i].to_vector<double>(), numbers(expected[i]), tolerance_of(name, dtype)), "")
              << "parameter " << i << " after step " << step;
        }
      }
    }
  }
  for (const auto& [name, make] : optimizers) EXPECT_GE(seen[name], 3) << name;
}

/// The gradients of set_gradients(), with what the record plants in them.
std::vector<Tensor> planted_gradients(const std::vector<Tensor>& parameters, std::size_t step) {
  set_gradients(parameters, step);
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters) {
    gradients.push_back(parameter.grad().detach());
    parameter.set_grad({});
  }
  for (const Json& plant : file().at("planted")) {
    if (plant.at(0) != step) continue;
    const double number = numbers(Json::array({plant.at(2)})).front();
    gradients.at(plant.at(1)).reshape({-1}).select(0, 0).fill_(number);
  }
  return gradients;
}

/// Steps that are skipped are decided on the device, where coefficients that depend on the number of steps are then
/// computed: for float32 parameters in float32. RAdam's lose some digits there. The scale is a float32, and its last
/// bit may differ from PyTorch's where its factors are no powers of two; gradients then differ by some 1e-8, in float32
/// by their rounding.
double scaled_tolerance_of(const std::string& name, const Json& options, DType dtype) {
  if (name == "radam" && dtype == DType::float32) return 1e-3;
  const bool exact = !options.contains("backoff_factor");
  return std::max(tolerance_of(name, dtype), exact ? 0 : dtype == DType::float32 ? 5e-5 : 1e-6);
}

TEST(Optimizers, SkipTheStepsThatPyTorchSkips) {
  std::map<std::string, int> seen;
  for (const Json& record : file().at("scaled")) {
    const std::string name = record.at("optimizer");
    ++seen[name];
    const Json& options = record.at("scaler");
    for (const DType dtype : {DType::float64, DType::float32}) {
      SCOPED_TRACE(
          fmt::format("{} {} {} in {}", name, record.at("options").dump(), options.dump(), russet::name_of(dtype)));
      const std::vector<Tensor> made = parameters(file().at(name == "muon" ? "matrices" : "shapes"), dtype);
      const auto optimizer = optimizers.at(name)(record, made);
      russet::amp::GradScaler scaler({.init_scale = options.at("init_scale"),
                                      .growth_factor = options.value("growth_factor", 2.0),
                                      .backoff_factor = options.value("backoff_factor", 0.5),
                                      .growth_interval = options.at("growth_interval")});
      for (std::size_t step = 0; step < record.at("values").size(); ++step) {
        const std::vector<Tensor> gradients = planted_gradients(made, step);
        Tensor loss = Tensor::from<double>({0}, {}).to(dtype);
        for (std::size_t i = 0; i < made.size(); ++i) loss = loss + sum(made[i] * gradients[i]);
        scaler.scale(loss).backward();
        scaler.step(*optimizer);
        scaler.update();
        optimizer->zero_grad();
        const double scale = record.at("scales")[step];
        EXPECT_NEAR(scaler.get_scale(), scale, 1e-6 * scale) << "after step " << step;
        EXPECT_EQ(scaler.state_dict().at("_growth_tracker"), record.at("trackers")[step]) << "after step " << step;
        const Json& expected = record.at("values")[step];
        const double tolerance = scaled_tolerance_of(name, options, dtype);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          EXPECT_EQ(difference(made[i].to_vector<double>(), numbers(expected[i]), tolerance), "")
              << "parameter " << i << " after step " << step;
        }
      }
    }
  }
  for (const auto& [name, make] : optimizers) EXPECT_GE(seen[name], 3) << name;
}

TEST(Optimizers, LBFGSTakesTheStepsOfPyTorch) {
  for (const Json& record : file().at("lbfgs")) {
    for (const DType dtype : {DType::float64, DType::float32}) {
      SCOPED_TRACE(fmt::format("{} in {}", record.at("options").dump(), russet::name_of(dtype)));
      const Tensor w = drawn(50, {3, 4}, dtype).requires_grad_();
      const Tensor b = drawn(51, {3}, dtype).requires_grad_();
      const Tensor x = drawn(52, {8, 4}, dtype);
      const Tensor y = drawn(53, {8, 3}, dtype);
      optim::LBFGS optimizer({w, b}, with(optim::LBFGSOptions{}, record.at("options")));
      const double tolerance = dtype == DType::float64 ? 1e-8 : 2e-3;
      for (std::size_t step = 0; step < record.at("losses").size(); ++step) {
        const Tensor loss = optimizer.step([&] {
          optimizer.zero_grad();
          const Tensor value = mean(square(tanh(matmul(x, w.t()) + b) - y)) + sum(pow(w, 4)) * 0.01;
          value.backward();
          return value;
        });
        const double expected = record.at("losses")[step];
        EXPECT_NEAR(loss.item(), expected, tolerance * expected);
        EXPECT_EQ(difference(w.to_vector<double>(), numbers(record.at("values")[step][0]), tolerance), "") << step;
        EXPECT_EQ(difference(b.to_vector<double>(), numbers(record.at("values")[step][1]), tolerance), "") << step;
      }
      if (dtype == DType::float32) continue;  // whose rounding decides when to stop
      const auto numbers = optimizer.state_dict().numbers;
      EXPECT_EQ(numbers.at("lbfgs.n_iter"), record.at("n_iter").get<double>());
      EXPECT_EQ(numbers.at("lbfgs.func_evals"), record.at("func_evals").get<double>());
    }
  }
}

void draw(const russet::nn::Module& model, std::uint64_t offset) {
  const russet::NoGrad guard;
  for (const auto& [name, tensor] : model.state_dict()) {
    const double low = name.ends_with("running_var") ? 0.5 : -1;
    if (is_floating(tensor.dtype())) Tensor(tensor).copy_(drawn(offset, tensor.sizes(), tensor.dtype(), low));
    ++offset;
  }
}

TEST(Optimizers, AveragedModelsArePyTorchs) {
  const russet::nn::NewModules place(russet::Device{}, DType::float64);
  const std::map<std::string, optim::AverageFunction> functions{
      {"default", {}}, {"swa", optim::get_swa_avg_fn()}, {"ema", optim::get_ema_avg_fn(0.9)}};
  for (const Json& record : file().at("averaged")) {
    SCOPED_TRACE(record.dump().substr(0, 60));
    const russet::nn::Sequential model(russet::nn::Linear(4, 3), russet::nn::BatchNorm1d(3));
    draw(model, 60);
    optim::AveragedModel averaged(
        model, {.avg_fn = functions.at(record.at("averaged")), .use_buffers = record.at("use_buffers")});
    for (std::uint64_t step = 0; step < 4; ++step) {
      draw(model, 70 + 10 * step);
      averaged.update_parameters(model);
    }
    const auto state = averaged.state_dict();
    std::vector<std::string> names;
    for (const auto& [name, tensor] : state) {
      names.push_back(name);
      EXPECT_EQ(difference(tensor.to_vector<double>(), numbers(record.at("state").at(name)), 1e-10), "") << name;
    }
    EXPECT_EQ(names.size(), record.at("state").size());

    std::vector<Tensor> batches;
    for (std::uint64_t i = 0; i < 3; ++i) batches.push_back(drawn(200 + i, {6, 4}, DType::float64));
    averaged.eval();
    update_bn(batches, averaged);
    EXPECT_FALSE(averaged.is_training());
    for (const auto& [name, tensor] : averaged.named_buffers()) {
      EXPECT_EQ(difference(tensor.to_vector<double>(), numbers(record.at("updated").at(name)), 1e-10), "") << name;
    }
  }
}

TEST(Optimizers, ClippingIsPyTorchs) {
  for (const Json& record : file().at("clips")) {
    SCOPED_TRACE(record.dump().substr(0, 60));
    const std::vector<Tensor> made = parameters(file().at("shapes"), DType::float64);
    set_gradients(made, 0);
    if (record.at("clip") == "norm") {
      const Json& power = record.at("power");
      const double norm_type = power.is_string() ? std::numeric_limits<double>::infinity() : power.get<double>();
      const double total = optim::clip_grad_norm_(made, record.at("limit"), norm_type).item();
      EXPECT_NEAR(total, record.at("total").get<double>(), 1e-9);
    } else {
      optim::clip_grad_value_(made, record.at("limit"));
    }
    for (std::size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(difference(made[i].grad().to_vector<double>(), numbers(record.at("gradients")[i]), 1e-9), "") << i;
    }
  }
}

}  // namespace
}  // namespace golden
