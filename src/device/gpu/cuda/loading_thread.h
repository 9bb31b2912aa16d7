#pragma once
// LoadingThread: loads NVIDIA's libraries while the program does something else, and is waited for when it ends.
#include <functional>
#include <memory>

namespace russet::cuda {

/// Runs a job in a thread of its own, or not at all where there is none. The thread that makes it waits for the job as
/// it ends; if that is the one that ends the process, it does so before anything is torn down: libraries that are still
/// being loaded would run on what is gone.
class LoadingThread {
 public:
  /// What the job throws is dropped: whoever needs its work does it again.
  explicit LoadingThread(std::function<void()> job);
  /// Waits for the job.
  ~LoadingThread();
  LoadingThread(const LoadingThread&) = delete;
  LoadingThread& operator=(const LoadingThread&) = delete;

 private:
  struct Job;
  struct JobsOfThread;
  static JobsOfThread& jobs_of_thread();

  std::shared_ptr<Job> job_;
};

}  // namespace russet::cuda
