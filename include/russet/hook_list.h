#pragma once
// Where tensors and modules keep their hooks.
#include <russet/hooks.h>
#include <memory>
#include <mutex>
#include <vector>

namespace russet {

/// Hooks of one kind, in order of registration. Copies share them. Threads may register, remove and run side by side.
template <class Signature>
class Hooks {
 public:
  using Hook = std::function<Signature>;

  HookHandle add(Hook hook) {
    auto added = std::make_shared<Hook>(std::move(hook));
    HookHandle handle([list = std::weak_ptr(list_), hook = std::weak_ptr(added)] {
      const std::shared_ptr<Hook> removed = hook.lock();  // destroyed outside of the lock
      if (const std::shared_ptr<List> present = list.lock()) present->remove(removed);
    });
    const std::lock_guard lock(list_->mutex);
    list_->hooks.push_back(std::move(added));
    return handle;
  }
  /// Those that are registered now: a hook may remove itself, or register others, while it runs.
  std::vector<std::shared_ptr<Hook>> present() const {
    const std::lock_guard lock(list_->mutex);
    return list_->hooks;
  }
  /// The same hooks in a list of its own.
  Hooks clone() const {
    Hooks made;
    made.list_->hooks = present();
    return made;
  }

 private:
  struct List {
    void remove(const std::shared_ptr<Hook>& hook) {
      const std::lock_guard lock(mutex);
      std::erase(hooks, hook);
    }
    std::mutex mutex;
    std::vector<std::shared_ptr<Hook>> hooks;
  };
  std::shared_ptr<List> list_ = std::make_shared<List>();
};

}  // namespace russet
