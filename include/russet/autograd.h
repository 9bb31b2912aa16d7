#pragma once
// Grad mode, gradients of chosen tensors, and functions with gradients of the user's own.
#include <russet/custom_function.h>
#include <russet/tensor.h>
#include <vector>

namespace russet {

/// Whether operators are recorded on the tape in this thread.
bool is_grad_enabled();

/// While an object of this lives, nothing is recorded on the tape in this thread.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

/// Switches grad mode for as long as the object lives.
class SetGrad {
 public:
  explicit SetGrad(bool enabled);
  ~SetGrad();
  SetGrad(const SetGrad&) = delete;
  SetGrad& operator=(const SetGrad&) = delete;

 private:
  bool before_;
};

namespace autograd {

struct GradOptions {
  std::optional<bool> retain_graph{};  // create_graph if not given
  bool create_graph = false;
  bool allow_unused = false;
};

/// Gradients of sum(outputs * gradients) for `inputs`; nothing is accumulated. `gradients` may be empty for outputs of
/// one element. Throws AutogradError for an input that was not used unless allow_unused (then undefined).
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& gradients = {}, const GradOptions& options = {});

}  // namespace autograd
}  // namespace russet
