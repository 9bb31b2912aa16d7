#pragma once
// Calls of every composite, and what becomes of them on a device: results or an error, and gradients.
#include <map>
#include <string>
#include <vector>

#include "calls/call.h"

namespace russet::conformance {

using golden::Making;

/// A call of a composite, as the golden files and calls.jsonl describe it.
struct Composite {
  golden::Function function;
  golden::Json arguments;
  std::string text;
};

/// The calls, by the function's name.
const std::map<std::string, std::vector<Composite>>& composites();

struct Outcome {
  std::vector<Tensor> results;
  std::string error;  // what kind of error was thrown, or empty
};
Outcome outcome(const Composite& call, const Making& making);

/// Gradients of the sum of all results, each element with a weight of its own; and gradients of a weighted sum of
/// those.
struct Gradients {
  std::vector<Tensor> first;
  std::vector<Tensor> second;
  std::string error;
};
Gradients gradients(const Composite& call, const Making& making);

/// Empty if gradients agree with central differences in float64 on the reference device along one direction, first
/// and second ones; else what differs.
std::string differ_from_differences(const Composite& call);

/// Empty if the values agree within `bound` of the largest expected one, and types, sizes and strides are the same.
std::string difference(const Tensor& actual, const Tensor& expected, double bound);

}  // namespace russet::conformance
