#pragma once
// Lender: scratch objects that are lent to one user at a time and kept for the next, so that a steady loop makes none.
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/spin_lock.h"

namespace russet::base {

/// Thread-safe. Objects come back as they were given back.
template <class T>
class Lender {
 public:
  class Loan {
   public:
    explicit Loan(Lender& lender) : lender_(lender), object_(lender.take()) {}
    ~Loan() { lender_.give(std::move(object_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    T& operator*() const { return *object_; }
    T* operator->() const { return object_.get(); }

   private:
    Lender& lender_;
    std::unique_ptr<T> object_;
  };

 private:
  std::unique_ptr<T> take() {
    {
      const std::lock_guard lock(lock_);
      if (!idle_.empty()) {
        std::unique_ptr<T> object = std::move(idle_.back());
        idle_.pop_back();
        return object;
      }
    }
    return std::make_unique<T>();
  }
  void give(std::unique_ptr<T> object) {
    const std::lock_guard lock(lock_);
    idle_.push_back(std::move(object));
  }

  SpinLock lock_;
  std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace russet::base
