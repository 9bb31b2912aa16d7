#pragma once
// Shared ownership by a count inside the object: one word a handle, no separate control block.
#include <atomic>
#include <cstdint>
#include <utility>

namespace russet {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  std::uint32_t reference_count() const { return count_.load(std::memory_order_acquire); }

 private:
  template <class T>
  friend class Ref;
  mutable std::atomic<std::uint32_t> count_{0};
};

template <class T>
class Ref {
 public:
  constexpr Ref() = default;
  constexpr Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) { retain(); }
  Ref(const Ref& other) : object_(other.object_) { retain(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Ref(const Ref<U>& other) : object_(other.get()) { retain(); }
  Ref& operator=(const Ref& other) { return *this = Ref(other); }  // NOLINT: right for itself, too
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { release(); }

  T* get() const { return static_cast<T*>(object_); }
  T& operator*() const { return *get(); }
  T* operator->() const { return get(); }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const = default;
  void reset() { *this = Ref(); }

 private:
  void retain() const {
    if (object_) object_->count_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (object_ && object_->count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object_;
  }
  // Not a T*: a handle can then be copied and destroyed where T is only declared.
  RefCounted* object_ = nullptr;
};

template <class T, class... Arguments>
Ref<T> make_ref(Arguments&&... arguments) {
  return Ref<T>(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace russet
