#pragma once
// Activation checkpointing, as in torch.utils.checkpoint: less memory for more work.
//
//     for (auto& layer : layers) x = checkpoint([&](const Tensor& in) { return layer(in); }, x);
#include <russet/tensor.h>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace russet {

namespace detail {

/// While one lives, what this thread records is not kept for backward, unless it is a result.
class CheckpointScope {
 public:
  CheckpointScope();
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope&) = delete;
  CheckpointScope& operator=(const CheckpointScope&) = delete;

  void keep(const Tensor& result) const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace detail

/// Calls `function` with the inputs and returns what it returns: a Tensor or a std::vector<Tensor>. Until backward(),
/// nothing is kept of the values in between: backward() computes them again from what the function read, that is from
/// its inputs and from the parameters and other tensors that it captured, which all get their gradients. Nothing is
/// called again: the same operations run on the same values, with the same random numbers and types, whatever autocast,
/// generators or parameters are by then, and what the function does besides (running statistics, prints) is done once.
///
/// Checkpoints nest: what an inner function returns is computed again with the outer one's values. In evaluation, under
/// NoGrad, there is nothing to keep, and this is a call. Throws what the function throws.
template <class Function, class... Inputs>
auto checkpoint(Function&& function, Inputs&&... inputs) {
  using Result = std::decay_t<std::invoke_result_t<Function, Inputs...>>;
  static_assert(std::is_same_v<Result, Tensor> || std::is_same_v<Result, std::vector<Tensor>>,
                "the function returns a Tensor or a std::vector<Tensor>");
  const detail::CheckpointScope scope;
  Result result = std::forward<Function>(function)(std::forward<Inputs>(inputs)...);
  if constexpr (std::is_same_v<Result, Tensor>) {
    scope.keep(result);
  } else {
    for (const Tensor& tensor : result) scope.keep(tensor);
  }
  return result;
}

}  // namespace russet
