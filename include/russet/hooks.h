#pragma once
// Hooks: functions of the user's that run when a gradient has arrived, or around a module's forward().
#include <functional>
#include <type_traits>
#include <utility>

namespace russet {

/// A hook that was registered. Letting go of the handle leaves the hook where it is.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  /// The hook does not run any more. Nothing happens the second time, or once the tensor or module is gone.
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

/// `hook` as a function that returns a Result, which is empty if `hook` returns nothing.
template <class Result, class... Arguments, class Hook>
std::function<Result(Arguments...)> returning(Hook hook) {
  if constexpr (std::is_void_v<std::invoke_result_t<Hook&, Arguments...>>) {
    return [hook = std::move(hook)](Arguments... arguments) mutable {
      hook(arguments...);
      return Result();
    };
  } else {
    return hook;
  }
}

}  // namespace russet
