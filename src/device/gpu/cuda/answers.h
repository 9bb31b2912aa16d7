#pragma once
// Answers: what a library said of each question: a call that is ready, or why there is none.
#include <russet/error.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/bounded_cache.h"
#include "device/gpu/cuda/pipeline.h"
#include "device/gpu/templates/text.h"
#include "device/gpu/vendor_library.h"

namespace russet::cuda {

template <class Call>
struct Answer {
  std::shared_ptr<const Call> call;
  std::string reason;
};

/// What a library answers to the compiler: a kernel of the call, which finds the regions and then its workspace.
template <class Call>
gpu::Verdict verdict_of(const Answer<Call>& answer, const gpu::VendorLibrary& library, std::vector<gpu::Region> regions,
                        const gpu::GpuContext& context) {
  if (!answer.call) return gpu::decline(answer.reason);
  const std::size_t workspace = padded_workspace(answer.call->workspace_bytes());
  if (workspace > 0) regions.push_back(gpu::scratch_region(0, workspace, true));
  return gpu::accept([&context, name = library.name(), call = answer.call, regions = std::move(regions), workspace] {
    return gpu::make_library_kernel(context, name, call, regions, workspace);
  });
}

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
