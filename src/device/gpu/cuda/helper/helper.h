#pragma once
// Helper: a process of its own that compiles. NVRTC's threads wait for each other, processes do not.
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "device/gpu/cuda/nvrtc.h"

namespace russet::cuda {

/// The program, beside the library of russet.
std::filesystem::path helper_program();

/// Compiles one source after the other. Not thread-safe.
class Helper {
 public:
  /// Throws DeviceError if the program cannot be started.
  explicit Helper(const std::filesystem::path& program);
  /// Waits until the process has ended.
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  /// As cuda::compile, if the helper's compiler has that name. Nothing if it has not, or the process is gone: then it
  /// is of no use any more. Throws CompileError.
  std::optional<Cubin> compile(const std::string& source, int capability, const std::string& compiler);
  /// Tells the process to end. Does not wait.
  void end() const;

 private:
  int socket_ = -1;
  pid_t process_ = 0;
};

/// What the helper's process does: answers over the socket until the other end is gone.
void serve_compilations(int socket);

}  // namespace russet::cuda
