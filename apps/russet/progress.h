#pragma once
// What a person sees of a loop: a bar with rate and time left, redrawn in place on a terminal, silent elsewhere.
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace russet::app {

/// Whether standard error is a terminal.
bool is_terminal();

class Progress {
 public:
  /// `total` steps, of which `done` were done before; `samples` in a step.
  Progress(std::int64_t total, std::int64_t done, std::int64_t samples);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Whether the bar would be drawn again now: a few times a second.
  bool due() const;
  void show(std::int64_t done, std::string_view label);
  /// Takes the bar away, before something else is printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t total_;
  std::int64_t first_;
  std::int64_t samples_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_{};
  bool visible_;
  bool on_screen_ = false;
};

/// "1:02:03", "2:03".
std::string format_time(double seconds);
/// A curve in `height` lines of at most `width` characters, drawn with block characters, with its range at the left.
std::string draw_curve(const std::vector<double>& values, int width = 60, int height = 8);

}  // namespace russet::app
