#pragma once
// Calls of every composite, and what becomes of them on a device: results or an error, and gradients.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calls/call.h"
#include "calls/function_table.h"

namespace russet::conformance {

using golden::Making;
using golden::Results;

/// A call of a composite, as the golden files and calls.jsonl describe it.
struct Composite {
  golden::Function function;
  golden::Json record;
  std::string name;
  std::string text;    // the name and the arguments
  std::string family;  // the file that it is from

  bool has_gradient() const { return text.find("\"g\"") != std::string::npos; }
  /// Memory as it is: nothing to read, nothing to compare.
  bool has_values() const { return !name.starts_with("empty"); }
  /// Whether it writes its arguments, or gives back some that others of its calls write.
  bool writes() const { return name.ends_with('_') || name == "batch_norm"; }
};

/// The calls, by the function's name.
const std::map<std::string, std::vector<Composite>>& composites();

/// All calls of a family, in the order of its file; the families.
std::vector<const Composite*> calls_of(const std::string& family);
const std::vector<std::string>& families();

/// A call on a device, in steps: many may be recorded before the first one runs. An error ends it and is kept.
class Attempt {
 public:
  /// Makes the arguments.
  Attempt(const Composite& call, const Making& making);
  /// Calls the function.
  void record();
  /// Calls the function, and records the gradients of the sum of all results, each element with a weight of its own;
  /// and gradients of a weighted sum of those.
  void record_gradients();
  /// Waits for everything that was recorded.
  void read();

  const std::vector<Tensor>& results() const { return results_; }
  const std::vector<Tensor>& first() const { return first_; }
  const std::vector<Tensor>& second() const { return second_; }
  /// "" or, with what was said, "an error: ...", "an internal error: ...", or "no such call: ..." where the description
  /// does not fit the function.
  const std::string& error() const { return error_; }
  /// The part of it that devices agree on.
  std::string kind_of_error() const { return error_.substr(0, error_.find(':')); }

 private:
  Results call();
  template <class Work>
  void attempt(Work&& work);

  const Composite& composite_;
  Making making_;
  std::optional<golden::Call> made_;
  std::vector<Tensor> results_, first_, second_;
  std::string error_;
};

/// Empty if gradients agree with central differences in float64 on the reference device along one direction, first
/// and second ones; else what differs.
std::string differ_from_differences(const Composite& call);

/// Empty if the values agree within `bound` of the largest expected one, or of `scale` if that is larger, and types,
/// sizes and strides are the same.
std::string difference(const Tensor& actual, const Tensor& expected, double bound, double scale = 0);

}  // namespace russet::conformance
