#pragma once
// Functions with gradients of the user's own.
//
//     struct Cube : autograd::Function<Cube> {
//       static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
//         ctx->save_for_backward({x});
//         return x * x * x;
//       }
//       static autograd::variable_list backward(autograd::AutogradContext* ctx, autograd::variable_list gradients) {
//         const Tensor x = ctx->get_saved_variables()[0];
//         return {gradients[0] * 3.0 * x * x};
//       }
//     };
//     const Tensor y = Cube::apply(x);
//
// forward() runs outside the tape. It returns a Tensor or a variable_list, and takes what it likes after the context:
// the tensors among its arguments, alone, optional or in a list, are what gradients are for. backward() gets one
// gradient for each result and returns one for each argument, each tensor of a list counting as one; an undefined
// tensor is zero, and is all there is for arguments that are no tensors. It is differentiated again where a gradient of
// gradients is wanted, so it must be written with operators.
#include <russet/tensor.h>
#include <any>
#include <concepts>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

namespace russet::autograd {

using variable_list = std::vector<Tensor>;

class CustomEntry;

/// What forward() leaves for backward().
class AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

  /// Tensors that backward() reads: arguments or results of forward(), or others, which then count as constant. Flushes
  /// know of them: what elementwise operators can compute again takes no memory until backward(). They keep the values
  /// that they have when forward() returns, whatever is written in place later.
  void save_for_backward(variable_list tensors);
  /// The saved tensors. Throws AutogradError when an earlier backward() has freed them.
  variable_list get_saved_variables() const;

  /// Arguments that forward() has written to in place. Each must be among its results.
  void mark_dirty(variable_list arguments);
  /// Results that have no gradient; integers never have one. backward() still gets zeros for them.
  void mark_non_differentiable(variable_list results);
  /// Whether backward() gets zeros, rather than undefined tensors, where no gradient arrived. True at first.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }
  /// Whether a gradient is wanted for this argument of forward(); numbered as the gradients that backward() returns.
  bool needs_input_grad(std::size_t argument) const;

  /// What else backward() needs: numbers, shapes. Tensors belong to save_for_backward().
  std::unordered_map<std::string, std::any> saved_data;

 private:
  friend class CustomEntry;
  friend class CustomCall;
  CustomEntry* entry_ = nullptr;  // none where nothing is put on the tape
  variable_list to_save_;
  variable_list dirty_;
  variable_list non_differentiable_;
  bool materialize_grads_ = true;
};

namespace detail {

using Forward = std::function<variable_list(AutogradContext* ctx)>;
using Backward = variable_list (*)(AutogradContext* ctx, variable_list gradients);
variable_list call_function(const std::type_info& function, const variable_list& arguments, const Forward& forward,
                            Backward backward);

/// The tensors in an argument, and an undefined one for any other argument.
template <class Argument>
void append(variable_list& arguments, const Argument& argument) {
  if constexpr (std::derived_from<Argument, Tensor>) {
    arguments.push_back(argument);
  } else if constexpr (std::same_as<Argument, std::optional<Tensor>>) {
    arguments.push_back(argument.value_or(Tensor()));
  } else if constexpr (std::ranges::range<Argument>) {
    if constexpr (std::derived_from<std::ranges::range_value_t<Argument>, Tensor>) {
      for (const Tensor& tensor : argument) arguments.push_back(tensor);
    } else {
      arguments.emplace_back();
    }
  } else {
    arguments.emplace_back();
  }
}

}  // namespace detail

/// Base of a function with a gradient of its own: T has static forward() and backward().
template <class T>
struct Function {
  /// Calls T::forward() and puts what it returns on the tape. Returns what it returns.
  template <class... Arguments>
  static auto apply(Arguments&&... arguments) {
    using Result = decltype(T::forward(std::declval<AutogradContext*>(), std::forward<Arguments>(arguments)...));
    constexpr bool is_single = std::same_as<std::remove_cvref_t<Result>, Tensor>;
    static_assert(is_single || std::same_as<Result, variable_list>, "forward() returns a Tensor or a variable_list");
    variable_list given;
    (detail::append(given, std::as_const(arguments)), ...);
    const auto forward = [&](AutogradContext* ctx) -> variable_list {
      if constexpr (is_single) {
        return {T::forward(ctx, std::forward<Arguments>(arguments)...)};
      } else {
        return T::forward(ctx, std::forward<Arguments>(arguments)...);
      }
    };
    const auto backward = [](AutogradContext* ctx, variable_list gradients) -> variable_list {
      return T::backward(ctx, std::move(gradients));
    };
    variable_list results = detail::call_function(typeid(T), given, forward, backward);
    if constexpr (is_single) {
      return results[0];
    } else {
      return results;
    }
  }
};

}  // namespace russet::autograd
