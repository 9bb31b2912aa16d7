#pragma once
// Log lines by channel, to stderr: RUSSET_LOG=kernels,plans (or all) switches channels on.
#include <fmt/format.h>
#include <string_view>

namespace russet::base {

/// Whether RUSSET_LOG lists `channel`, or `all`.
bool log_enabled(std::string_view channel);
/// Writes "russet CHANNEL: TEXT" as one line, whatever RUSSET_LOG says.
void log_line(std::string_view channel, std::string_view text);

/// A channel. Keep one in a static; arguments are formatted only if it is on:
///     static const base::Log log("kernels");
///     log("{} declined: {}", name, reason);
class Log {
 public:
  explicit Log(std::string_view channel) : channel_(channel), enabled_(log_enabled(channel)) {}
  bool enabled() const { return enabled_; }

  template <class... Arguments>
  void operator()(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    if (enabled_) log_line(channel_, fmt::format(format, std::forward<Arguments>(arguments)...));
  }

 private:
  std::string_view channel_;
  bool enabled_;
};

}  // namespace russet::base
