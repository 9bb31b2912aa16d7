#include "device/gpu/cuda/compilers.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "base/log.h"

namespace russet::cuda {
namespace {

/// Compilations in this process before there is a helper for the next: more would wait for each other.
constexpr std::size_t most_here = 4;

const base::Log& log() {
  static const base::Log channel("kernels");
  return channel;
}

}  // namespace

/// One compilation, from its beginning to its end.
class Compilers::Turn {
 public:
  explicit Turn(Compilers& compilers) : compilers_(compilers), helper_(compilers.take_helper()) {}
  ~Turn() { compilers_.give_back(std::move(helper_)); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  Cubin compile(const std::string& source) {
    const int capability = compilers_.capability_;
    if (helper_ != nullptr) {
      if (std::optional<Cubin> cubin = helper_->compile(source, capability, compilers_.name_)) return std::move(*cubin);
      compilers_.lose(std::move(helper_));
    }
    return cuda::compile(source, capability);
  }

 private:
  Compilers& compilers_;
  std::unique_ptr<Helper> helper_;  // nullptr: it runs here
};

std::size_t Compilers::usual_helpers() {
  const std::size_t threads = std::thread::hardware_concurrency();
  return threads > most_here ? std::min(threads - most_here, std::size_t{12}) : 0;
}

Compilers::Compilers(int capability, std::filesystem::path program, std::size_t most_helpers)
    : capability_(capability),
      name_(compiler_name(capability)),
      program_(std::move(program)),
      most_helpers_(most_helpers) {}

Cubin Compilers::compile(const std::string& source) { return Turn(*this).compile(source); }

std::size_t Compilers::started_helpers() const {
  const std::lock_guard lock(mutex_);
  return started_helpers_;
}

std::unique_ptr<Helper> Compilers::take_helper() {
  const std::lock_guard lock(mutex_);
  if (running_here_ >= most_here) {
    if (!idle_.empty()) {
      std::unique_ptr<Helper> helper = std::move(idle_.back());
      idle_.pop_back();
      ++busy_helpers_;
      return helper;
    }
    if (busy_helpers_ < most_helpers_) {
      if (std::unique_ptr<Helper> helper = start_helper()) {
        ++busy_helpers_;
        return helper;
      }
    }
  }
  ++running_here_;
  return nullptr;
}

std::unique_ptr<Helper> Compilers::start_helper() {
  try {
    auto helper = std::make_unique<Helper>(program_);
    ++started_helpers_;
    return helper;
  } catch (const DeviceError& error) {
    log()("no compile helpers: {}", error.what());
    most_helpers_ = 0;
    return nullptr;
  }
}

void Compilers::lose(std::unique_ptr<Helper> helper) {
  const std::lock_guard lock(mutex_);
  log()("a compile helper failed; there will be no more of them");
  most_helpers_ = 0;
  --busy_helpers_;
  ++running_here_;
  helper.reset();
}

void Compilers::give_back(std::unique_ptr<Helper> helper) {
  std::vector<std::unique_ptr<Helper>> done;
  {
    const std::lock_guard lock(mutex_);
    if (helper != nullptr) {
      idle_.push_back(std::move(helper));
      --busy_helpers_;
    } else {
      --running_here_;
    }
    if (running_here_ + busy_helpers_ == 0) done.swap(idle_);
  }
  for (const auto& idle : done) idle->end();  // all at once, then each is waited for
}

}  // namespace russet::cuda
