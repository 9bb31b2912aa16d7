#include "device/gpu/cuda/loading_thread.h"

#include <exception>
#include <future>
#include <system_error>
#include <utility>
#include <vector>

namespace russet::cuda {
namespace {

/// The jobs that a thread has begun. Objects of threads end before all others do.
struct Jobs {
  ~Jobs() {
    for (const std::future<void>& job : ends) job.wait();
  }
  std::vector<std::future<void>> ends;
};

thread_local Jobs jobs;

}  // namespace

LoadingThread::LoadingThread(std::function<void()> job) {
  std::promise<void> end;
  std::future<void> ends = end.get_future();
  try {
    thread_ = std::thread([job = std::move(job), end = std::move(end)]() mutable {
      try {
        job();
      } catch (const std::exception&) {
        end.set_value();
        return;
      }
      end.set_value();
    });
  } catch (const std::system_error&) {
    return;  // no thread
  }
  jobs.ends.push_back(std::move(ends));
}

LoadingThread::~LoadingThread() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace russet::cuda
