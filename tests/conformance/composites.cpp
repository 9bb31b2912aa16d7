#include "conformance/composites.h"

#include <fmt/format.h>
#include <russet/autograd.h>

#include <cmath>
#include <set>

namespace russet::conformance {
namespace {

using golden::Call;

void add_line(const std::string& line, const std::string& family, std::set<std::string>& known,
              std::map<std::string, std::vector<Composite>>& calls) {
  const golden::Json record = golden::Json::parse(line);
  const std::string name = record.at("f");
  const std::string named = record.contains("k") ? record.at("k").dump() : "";
  Composite call{golden::function_named(name), record, name, name + record.at("a").dump() + named, family};
  if (known.insert(call.text).second) calls[name].push_back(std::move(call));
}

/// The weights of a result's elements in what is differentiated.
Tensor weights(const Tensor& like, std::uint64_t index, test::Pool* pool) {
  const std::string key =
      pool == nullptr ? "" : fmt::format("weights {} {} {}", index, to_string(like.sizes()), name_of(like.dtype()));
  return test::take(pool, key, [&] {
    return golden::real(Call::seed, 1000 + index, like.sizes(), 0.5, 1.5, like.dtype(), like.device());
  });
}

struct Weighted {
  std::vector<Tensor> tensors;
  std::vector<Tensor> weights;

  Weighted(const std::vector<Tensor>& from, std::uint64_t first_index, test::Pool* pool = nullptr) {
    for (const Tensor& tensor : from) {
      if (!tensor.defined() || !is_floating(tensor.dtype())) continue;
      const std::uint64_t index = first_index + tensors.size();
      tensors.push_back(tensor);
      weights.push_back(conformance::weights(tensor, index, pool));
    }
  }
  double value() const {
    double total = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) total += sum(tensors[i] * weights[i]).item();
    return total;
  }
  /// Without those that nothing was differentiated through.
  Weighted differentiable() const {
    Weighted kept({}, 0);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].requires_grad()) continue;
      kept.tensors.push_back(tensors[i]);
      kept.weights.push_back(weights[i]);
    }
    return kept;
  }
};

std::vector<Tensor> gradients_of(const Weighted& outputs, const std::vector<Tensor>& leaves, bool create_graph) {
  const Weighted plain = outputs.differentiable();
  if (plain.tensors.empty()) return std::vector<Tensor>(leaves.size());
  return autograd::grad(plain.tensors, leaves, plain.weights, {.create_graph = create_graph, .allow_unused = true});
}

/// The slope along Call::direction that gradients tell, and the size of its terms.
std::pair<double, double> along(const std::vector<Tensor>& gradients) {
  double slope = 0;
  double size = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Tensor terms = gradients[i] * Call::direction(gradients[i], i);
    slope += sum(terms).item();
    size += sum(abs(terms)).item();
  }
  return {slope, size};
}

template <class Value>
std::string compare(const char* what, const std::vector<Tensor>& gradients, Value value) {
  constexpr double step = 1e-5;
  const auto [slope, size] = along(gradients);
  const double expected = (value(step) - value(-step)) / (2 * step);
  if (!std::isfinite(expected) || std::abs(slope - expected) <= 1e-6 * (1 + size + std::abs(expected))) return "";
  return fmt::format("{}: {} instead of {}", what, slope, expected);
}

}  // namespace

const std::vector<std::string>& families() {
  static const std::vector<std::string> all = {"elementwise", "reduction", "movement", "indexing", "contraction",
                                               "linalg",      "nn",        "losses",   "creation", "more"};
  return all;
}

const std::map<std::string, std::vector<Composite>>& composites() {
  static const auto calls = [] {
    std::map<std::string, std::vector<Composite>> made;
    std::set<std::string> known;
    for (const std::string& family : families()) {
      if (family == "more") continue;
      for (const std::string& line : golden::read_lines(fmt::format("composites_{}.jsonl.gz", family))) {
        add_line(line, family, known, made);
      }
    }
    for (const std::string& line : golden::read_lines("../../conformance/calls.jsonl")) {
      add_line(line, "more", known, made);
    }
    return made;
  }();
  return calls;
}

std::vector<const Composite*> calls_of(const std::string& family) {
  std::vector<const Composite*> found;
  for (const auto& [name, calls] : composites()) {
    for (const Composite& call : calls) {
      if (call.family == family) found.push_back(&call);
    }
  }
  return found;
}

template <class Work>
void Attempt::attempt(Work&& work) {
  if (!error_.empty()) return;
  try {
    work();
  } catch (const InternalError& error) {
    error_ = fmt::format("an internal error: {}", error.what());
  } catch (const Error& error) {
    error_ = fmt::format("an error: {}", error.what());
  } catch (const std::exception& error) {
    error_ = fmt::format("no such call: {}", error.what());
  }
}

Attempt::Attempt(const Composite& call, const Making& making) : composite_(call), making_(making) {
  if (call.writes()) making_.pool = nullptr;
  attempt([&] { made_.emplace(composite_.record, making_); });
}

/// Calls the function; not with arguments that another call wrote.
Results Attempt::call() {
  if (made_->is_stale()) made_.emplace(composite_.record, making_);
  return composite_.function(*made_);
}

void Attempt::record() {
  attempt([&] {
    results_ = call();
    // Not even to lay it out in memory.
    if (!composite_.has_values()) results_.assign(results_.size(), Tensor());
  });
}

void Attempt::record_gradients() {
  attempt([&] {
    const Weighted results(call(), 0, making_.pool);
    first_ = gradients_of(results, made_->leaves(), true);
    second_ = gradients_of(Weighted(first_, 100, making_.pool), made_->leaves(), false);
  });
}

void Attempt::read() {
  attempt([&] {
    for (const auto* tensors : {&results_, &first_, &second_}) {
      for (const Tensor& tensor : *tensors) {
        if (tensor.defined()) tensor.to_bytes();
      }
    }
  });
  if (!error_.empty()) results_ = first_ = second_ = {};
}

std::string differ_from_differences(const Composite& call) {
  Making making{.floating = DType::float64, .device = DeviceType::reference};
  Attempt found(call, making);
  found.record_gradients();
  found.read();
  if (!found.error().empty()) return found.error();
  const std::string first = compare("gradient", found.first(), [&](double nudge) {
    making.nudge = nudge;
    return Weighted(call.function(Call(call.record, making)), 0).differentiable().value();
  });
  if (!first.empty()) return first;
  return compare("second gradient", found.second(), [&](double nudge) {
    making.nudge = nudge;
    const Call made(call.record, making);
    const std::vector<Tensor> first = gradients_of(Weighted(call.function(made), 0), made.leaves(), true);
    return Weighted(first, 100).value();
  });
}

std::string difference(const Tensor& actual, const Tensor& expected, double bound, double scale) {
  if (actual.defined() != expected.defined()) return actual.defined() ? "it is defined" : "it is undefined";
  if (!actual.defined()) return "";
  if (actual.dtype() != expected.dtype()) return fmt::format("its type is {}", name_of(actual.dtype()));
  if (actual.sizes() != expected.sizes()) {
    return fmt::format("its sizes are {}, not {}", to_string(actual.sizes()), to_string(expected.sizes()));
  }
  if (actual.strides() != expected.strides()) return "strides " + to_string(actual.strides());
  return golden::difference(actual.to_vector<double>(), expected.to_vector<double>(), bound, scale);
}

}  // namespace russet::conformance
