#include "device/gpu/cuda/loading_thread.h"

#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace russet::cuda {

struct LoadingThread::Job {
  void finish() {
    std::call_once(finished, [this] { thread.join(); });
  }

  std::thread thread;
  std::once_flag finished;
};

/// Those that a thread has begun and that nobody has waited for. Objects of threads end before all others do.
struct LoadingThread::JobsOfThread {
  ~JobsOfThread() {
    for (const std::weak_ptr<Job>& begun : jobs) {
      if (const std::shared_ptr<Job> job = begun.lock()) job->finish();
    }
  }
  void add(const std::shared_ptr<Job>& job) {
    std::erase_if(jobs, [](const std::weak_ptr<Job>& begun) { return begun.expired(); });
    jobs.push_back(job);
  }

  std::vector<std::weak_ptr<Job>> jobs;
};

LoadingThread::JobsOfThread& LoadingThread::jobs_of_thread() {
  thread_local JobsOfThread jobs;
  return jobs;
}

LoadingThread::LoadingThread(std::function<void()> job) {
  auto begun = std::make_shared<Job>();
  try {
    begun->thread = std::thread([job = std::move(job)] {
      try {
        job();
      } catch (const std::exception&) {
        return;
      }
    });
  } catch (const std::system_error&) {
    return;  // no thread
  }
  job_ = std::move(begun);
  jobs_of_thread().add(job_);
}

LoadingThread::~LoadingThread() {
  if (job_) job_->finish();
}

}  // namespace russet::cuda
