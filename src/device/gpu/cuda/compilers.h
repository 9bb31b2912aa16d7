#pragma once
// Compilers: NVRTC in this process and, while that is busy, in helpers beside it.
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/gpu/cuda/helper/helper.h"
#include "device/gpu/cuda/nvrtc.h"

namespace russet::cuda {

/// A first compilation runs here, so a single one starts no process. Helpers end when nothing is left to compile. What
/// a helper cannot do, because its program is not installed or it was killed, is done here. Thread-safe.
class Compilers {
 public:
  /// As many helpers as the processor has threads beside those that compile here, but at most 12.
  static std::size_t usual_helpers();

  /// `program`: of the helpers. Throws DeviceError if there is no NVRTC.
  explicit Compilers(int capability, std::filesystem::path program = helper_program(),
                     std::size_t most_helpers = usual_helpers());

  /// compiler_name() of what it compiles with.
  const std::string& name() const { return name_; }
  /// Machine code of a source, as cuda::compile.
  Cubin compile(const std::string& source);
  /// How many helpers have been started so far.
  std::size_t started_helpers() const;

 private:
  class Turn;

  /// nullptr: the compilation runs here.
  std::unique_ptr<Helper> take_helper();
  std::unique_ptr<Helper> start_helper();
  void give_back(std::unique_ptr<Helper> helper);
  /// A helper failed: what it had to do runs here.
  void lose(std::unique_ptr<Helper> helper);

  int capability_;
  std::string name_;
  std::filesystem::path program_;
  mutable std::mutex mutex_;  // of all that follows
  std::size_t most_helpers_;  // 0 once one has failed
  std::size_t started_helpers_ = 0;
  std::size_t running_here_ = 0;  // compilations
  std::size_t busy_helpers_ = 0;
  std::vector<std::unique_ptr<Helper>> idle_;
};

}  // namespace russet::cuda
