#pragma once
// Answers: what a library said of each question: a call that is ready, or why there is none.
#include <russet/error.h>

#include <memory>
#include <mutex>
#include <string>

#include "base/bounded_cache.h"

namespace russet::cuda {

template <class Call>
struct Answer {
  std::shared_ptr<const Call> call;
  std::string reason;
};

/// Thread-safe: one question is asked at a time.
template <class Call>
class Answers {
 public:
  /// The answer to a question, which says all that matters; `ask()` gives a call, or throws DeviceError.
  template <class Ask>
  Answer<Call> find(const std::string& question, const Ask& ask) {
    const std::lock_guard lock(mutex_);
    if (const Answer<Call>* const known = known_.find(question)) return *known;
    Answer<Call> answer;
    try {
      answer.call = ask();
    } catch (const DeviceError& error) {
      answer.reason = error.what();
    }
    return known_.insert(question, std::move(answer), 1);
  }

 private:
  static constexpr std::size_t most = 4096;

  std::mutex mutex_;
  base::BoundedCache<std::string, Answer<Call>> known_{most};
};

}  // namespace russet::cuda
