#pragma once
// What the system says about this process's memory.
#include <cstddef>
#include <optional>

namespace russet::app {

/// The most bytes that the process has had in memory since this was made, beyond what it had then. Nothing where the
/// system does not tell (it does on Linux).
class ResidentPeak {
 public:
  ResidentPeak();
  std::optional<std::size_t> growth() const;

 private:
  std::optional<std::size_t> before_;
};

}  // namespace russet::app
