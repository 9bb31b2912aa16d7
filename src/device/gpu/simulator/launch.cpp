#include "launch.h"

#include <fmt/format.h>
#include <russet/error.h>

#include "module.h"

namespace russet::simulator {
namespace {

using russet_simulator::Argument;
using russet_simulator::ArgumentKind;

constexpr std::uint32_t max_groups_yz = 65535;

std::string judge_size(const Dispatch& dispatch) {
  const std::uint32_t stated = max_threads(*dispatch.kernel);
  const std::uint32_t threads = dispatch.threads;
  if (threads == 0 || threads % russet_simulator::lanes != 0) {
    return fmt::format("threadgroups of {} threads: not a multiple of {}", threads, russet_simulator::lanes);
  }
  if (threads > stated) return fmt::format("threadgroups of {} threads: the kernel states {} at most", threads, stated);
  if (threads > options().max_threads) {
    return fmt::format("threadgroups of {} threads: the device takes {} at most", threads, options().max_threads);
  }
  const auto& [x, y, z] = dispatch.groups;
  if (x == 0 || y == 0 || z == 0) return fmt::format("a grid of {} x {} x {} threadgroups", x, y, z);
  if (y > max_groups_yz || z > max_groups_yz) {
    return fmt::format("a grid of {} x {} x {} threadgroups: y and z are {} at most", x, y, z, max_groups_yz);
  }
  return {};
}

std::string judge_buffer(const Argument& argument, const BoundMemory& range) {
  if (range.begin == nullptr && range.bytes > 0) {
    return fmt::format("argument '{}' is bound to nothing", argument.name);
  }
  if (argument.kind == ArgumentKind::out && !range.writable) {
    return fmt::format("argument '{}' is written, but '{}' is bound to it for reading alone", argument.name,
                       range.name);
  }
  return {};
}

std::string judge_table(const Dispatch& dispatch, std::size_t bases) {
  if (dispatch.bases.size() != bases) {
    return fmt::format("{} bases are bound, the kernel takes {}", dispatch.bases.size(), bases);
  }
  for (std::size_t i = 0; i < dispatch.buffers.size(); ++i) {
    const auto& [base, place] = dispatch.reached[i];
    if (base >= bases || place + sizeof(std::uint64_t) > dispatch.values.size()) {
      return fmt::format("buffer {} is reached through base {} and byte {} of a table of {} bytes", i, base, place,
                         dispatch.values.size());
    }
    if (dispatch.buffers[i].begin == nullptr && dispatch.buffers[i].bytes > 0) {
      return fmt::format("buffer {} is nowhere", i);
    }
  }
  return {};
}

std::string judge_arguments(const Dispatch& dispatch) {
  const auto arguments = dispatch.kernel->arguments();
  std::size_t buffers = arguments.size();
  if (!arguments.empty() && arguments.back().kind == ArgumentKind::values) {
    --buffers;
    if (dispatch.values.size() < arguments.back().bytes) {
      return fmt::format("{} bytes of values, the kernel reads {}", dispatch.values.size(), arguments.back().bytes);
    }
  } else if (!dispatch.values.empty()) {
    return "values for a kernel that takes none";
  }
  if (!dispatch.bases.empty()) return judge_table(dispatch, buffers);
  if (dispatch.buffers.size() != buffers) {
    return fmt::format("{} buffers are bound, the kernel takes {}", dispatch.buffers.size(), buffers);
  }
  for (std::size_t i = 0; i < buffers; ++i) {
    std::string refusal = judge_buffer(arguments[i], dispatch.buffers[i]);
    if (!refusal.empty()) return refusal;
  }
  return {};
}

}  // namespace

bool judge_launch(const Dispatch& dispatch) {
  if (dispatch.kernel == nullptr) throw InternalError("simulated GPU: a dispatch without a kernel");
  std::string refusal = judge_size(dispatch);
  if (refusal.empty()) refusal = judge_arguments(dispatch);
  if (refusal.empty()) return true;
  add_report({"launch", dispatch.kernel->name(), std::move(refusal)});
  return false;
}

}  // namespace russet::simulator
