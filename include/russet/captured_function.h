#pragma once
// CapturedFunction: a step that is recorded a few times, and then runs again without being recorded.
#include <russet/tensor.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace russet {

/// A function of tensors, such as a step of training. Its calls are recorded until two in a row have recorded the same
/// work on the same tensors; from then on a call runs that work again, and the function is not called. What a step
/// costs the host is then some microseconds: small models otherwise wait for it. Like torch.cuda.graph, on any device.
///
/// Tensors are looked up in each call: what the function reads and writes beyond its inputs (parameters, what an
/// optimizer keeps, running statistics, gradients) goes on as if the function had been called, and so do random
/// numbers of the default generators and counts of an optimizer's steps. All else that the function does happens in
/// recorded calls alone: numbers stay those of the recording (but for live_number), and results have to be returned. It
/// is recorded anew for inputs of other shapes, strides, types or devices, in another grad mode or under another
/// autocast, after manual_seed, Module::train and eval, requires_grad_, set_data, set_grad, changed options of an
/// optimizer (but for its learning rate, which is looked up), and reset(). That a variable was assigned another tensor
/// is noticed only where nobody else holds the one before.
///
/// Some work is recorded in each call, which why_recorded() explains: if the function reads a value or flushes, brings
/// values from the host, reads memory that is visible outside, writes to its inputs, returns what requires a gradient,
/// leaves a new tensor elsewhere than in its results, or uses several devices or a generator of its own.
class CapturedFunction {
 public:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;
  explicit CapturedFunction(Function function);
  ~CapturedFunction();
  CapturedFunction(CapturedFunction&&) noexcept;
  CapturedFunction& operator=(CapturedFunction&&) noexcept;

  /// What the function returns, as one plan (in_one_plan); flushes, and does not wait. One thread at a time. Throws
  /// what the function and its work throw.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs = {});
  /// How many calls ran without being recorded.
  std::uint64_t replays() const;
  /// Why the last call was recorded; empty if it was not.
  const std::string& why_recorded() const;
  /// The next calls are recorded: something that the function depends on has changed.
  void reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A number as a tensor of no axes. In a call of a captured function, later calls ask `value` again.
Tensor live_number(const std::function<double()>& value, const TensorOptions& options = {});
/// What the host does in each call of a captured function, besides recording it, if the calling thread is in one: later
/// calls call `before` before their work writes anything, and `after`, which must not throw, once all that it writes is
/// a pending value.
void in_each_call(std::function<void()> before, std::function<void()> after);
/// Says that a setting has changed that captured functions may have read: all of them are recorded anew.
void note_changed_setting();

}  // namespace russet
