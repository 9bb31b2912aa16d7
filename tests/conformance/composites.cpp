#include "conformance/composites.h"

#include <fmt/format.h>
#include <russet/autograd.h>

#include <cmath>
#include <fstream>
#include <set>

namespace russet::conformance {
namespace {

using golden::Call;
using golden::Results;

void add_line(const std::string& line, std::set<std::string>& known,
              std::map<std::string, std::vector<Composite>>& calls) {
  const golden::Json record = golden::Json::parse(line);
  const std::string name = record.at("f");
  Composite call{golden::functions().at(name), record.at("a"), name + record.at("a").dump()};
  if (known.insert(call.text).second) calls[name].push_back(std::move(call));
}

/// The weights of a result's elements in what is differentiated.
Tensor weights(const Tensor& like, std::uint64_t index) {
  return golden::real(Call::seed, 1000 + index, like.sizes(), 0.5, 1.5, like.dtype(), like.device());
}

struct Weighted {
  std::vector<Tensor> tensors;
  std::vector<Tensor> weights;

  Weighted(const std::vector<Tensor>& from, std::uint64_t first_index) {
    for (const Tensor& tensor : from) {
      if (!tensor.defined() || !is_floating(tensor.dtype())) continue;
      const std::uint64_t index = first_index + tensors.size();
      tensors.push_back(tensor);
      weights.push_back(conformance::weights(tensor, index));
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

const std::map<std::string, std::vector<Composite>>& composites() {
  static const auto calls = [] {
    std::map<std::string, std::vector<Composite>> made;
    std::set<std::string> known;
    for (const char* family :
         {"elementwise", "reduction", "movement", "indexing", "contraction", "nn", "losses", "creation"}) {
      for (const std::string& line : golden::read_lines(fmt::format("composites_{}.jsonl.gz", family))) {
        add_line(line, known, made);
      }
    }
    std::ifstream file(RUSSET_SOURCE_DIR "/tests/conformance/calls.jsonl");
    for (std::string line; std::getline(file, line);) add_line(line, known, made);
    return made;
  }();
  return calls;
}

Outcome outcome(const Composite& call, const Making& making) {
  try {
    const Call made(call.arguments, making);
    Outcome found{call.function(made), ""};
    for (const Tensor& result : found.results) {
      if (result.defined()) result.to_bytes();
    }
    return found;
  } catch (const InternalError& error) {
    return {{}, fmt::format("an internal error: {}", error.what())};
  } catch (const Error&) {
    return {{}, "an error"};
  } catch (const std::exception&) {
    return {{}, "no such call"};  // the description does not fit the function
  }
}

Gradients gradients(const Composite& call, const Making& making) {
  try {
    const Call made(call.arguments, making);
    const Weighted results(call.function(made), 0);
    Gradients found;
    found.first = gradients_of(results, made.leaves(), true);
    found.second = gradients_of(Weighted(found.first, 100), made.leaves(), false);
    for (const auto* tensors : {&found.first, &found.second}) {
      for (const Tensor& tensor : *tensors) {
        if (tensor.defined()) tensor.to_bytes();
      }
    }
    return found;
  } catch (const InternalError& error) {
    return {{}, {}, fmt::format("an internal error: {}", error.what())};
  } catch (const Error& error) {
    return {{}, {}, fmt::format("an error: {}", error.what())};
  }
}

std::string differ_from_differences(const Composite& call) {
  Making making{.floating = DType::float64, .device = DeviceType::reference};
  const Gradients found = gradients(call, making);
  if (!found.error.empty()) return found.error;
  const std::string first = compare("gradient", found.first, [&](double nudge) {
    making.nudge = nudge;
    return Weighted(call.function(Call(call.arguments, making)), 0).differentiable().value();
  });
  if (!first.empty()) return first;
  return compare("second gradient", found.second, [&](double nudge) {
    making.nudge = nudge;
    const Call made(call.arguments, making);
    const std::vector<Tensor> first = gradients_of(Weighted(call.function(made), 0), made.leaves(), true);
    return Weighted(first, 100).value();
  });
}

std::string difference(const Tensor& actual, const Tensor& expected, double bound) {
  if (actual.defined() != expected.defined()) return actual.defined() ? "it is defined" : "it is undefined";
  if (!actual.defined()) return "";
  if (actual.dtype() != expected.dtype()) return fmt::format("its type is {}", name_of(actual.dtype()));
  if (actual.sizes() != expected.sizes()) {
    return fmt::format("its sizes are {}, not {}", to_string(actual.sizes()), to_string(expected.sizes()));
  }
  if (actual.strides() != expected.strides()) return "strides " + to_string(actual.strides());
  return golden::difference(actual.to_vector<double>(), expected.to_vector<double>(), bound);
}

}  // namespace russet::conformance
