#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace russet::app {
namespace {

constexpr std::array<std::string_view, 9> eighths{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
constexpr std::array<std::string_view, 9> levels{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

std::string bar(double share, int width) {
  const auto filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * width * 8);
  std::string text;
  for (int cell = 0; cell < width; ++cell)
    text += eighths[static_cast<std::size_t>(std::clamp(filled - cell * 8, 0, 8))];
  return text;
}

/// The mean of each of `count` runs of neighbours, so that a long curve fits; what is not finite is left out.
std::vector<double> resample(const std::vector<double>& values, std::size_t count) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  if (finite.size() <= count) return finite;
  std::vector<double> means;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * finite.size() / count;
    const std::size_t end = std::max((i + 1) * finite.size() / count, begin + 1);
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += finite[k];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return means;
}

}  // namespace

bool is_terminal() { return ::isatty(STDERR_FILENO) != 0; }

Progress::Progress(std::int64_t total, std::int64_t done, std::int64_t samples)
    : total_(total), first_(done), samples_(samples), visible_(is_terminal()) {}

bool Progress::due() const { return visible_ && Clock::now() - drawn_ > std::chrono::milliseconds(200); }

void Progress::show(std::int64_t done, std::string_view label) {
  if (!visible_) return;
  drawn_ = Clock::now();
  const double seconds = std::chrono::duration<double>(drawn_ - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done - first_) / seconds : 0;
  const std::string left = rate > 0 ? format_time(static_cast<double>(total_ - done) / rate) : "-:--";
  const std::string right =
      fmt::format(" {}/{}  {:.0f} samples/s  {} left", done, total_, rate * static_cast<double>(samples_), left);
  const int room = terminal_width() - static_cast<int>(label.size() + right.size()) - 4;
  const double share = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 1;
  fmt::print(stderr, "\r\x1b[2K{} |{}|{}", label, bar(share, std::clamp(room, 8, 40)), right);
  std::fflush(stderr);
  on_screen_ = true;
}

void Progress::clear() {
  if (!on_screen_) return;
  fmt::print(stderr, "\r\x1b[2K");
  std::fflush(stderr);
  on_screen_ = false;
}

std::string format_time(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string draw_curve(const std::vector<double>& values, int width, int height) {
  const std::vector<double> points = resample(values, static_cast<std::size_t>(std::max(width, 1)));
  if (points.empty()) return {};
  const double low = std::min(0.0, *std::min_element(points.begin(), points.end()));
  const double high = std::max(*std::max_element(points.begin(), points.end()), low + 1e-12);
  std::string text;
  for (int row = height - 1; row >= 0; --row) {
    const bool labelled = row == height - 1 || row == 0;
    text += labelled ? fmt::format("{:8.3f} ┤", row == 0 ? low : high) : "         │";
    for (const double value : points) {
      const double cells = (value - low) / (high - low) * height * 8;
      const int level = std::clamp(static_cast<int>(std::lround(cells)) - row * 8, 0, 8);
      text += levels[static_cast<std::size_t>(level)];
    }
    text += "\n";
  }
  return text;
}

}  // namespace russet::app
