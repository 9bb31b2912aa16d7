// Launches that would keep a GPU for too long are cut: a GPU's watchdog ends a command buffer that takes seconds. A
// slice is a launch of a few of the threadgroups, in a command buffer of its own. Metal numbers the threadgroups of
// every launch from 0, so a slice is a shared launch, whose kernel finds in a table which of a member's threadgroups it
// has.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include "base/log.h"
#include "device/gpu/gpu_kernel.h"

namespace russet::gpu {
namespace {

constexpr double milliseconds = 1e3;

std::uint64_t groups_of(const Call& call) {
  std::uint64_t groups = 0;
  for (const Member& member : call.members) groups += member.groups;
  return call.members.empty() ? std::uint64_t{call.groups[0]} * call.groups[1] * call.groups[2] : groups;
}

/// Says once of each kernel that a launch of it stays long: of one threadgroup, or of a kernel that shares no launch.
void say_uncut(const std::string& kernel, double seconds) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (!said.insert(kernel).second) return;
  base::log_line(
      "gpu", fmt::format("a launch of {} takes {:.3g} ms at least, by a model of the GPU, and cannot be cut further",
                         kernel, seconds * milliseconds));
}

/// Divides the threadgroups of a launch, in their order, among launches that take at most `longest` seconds.
class Cutter {
 public:
  Cutter(const Call& whole, double longest) : whole_(whole), longest_(longest) { clear(); }

  void add(const Member& member) {
    if (member.groups == 0) return;
    const double each = member.seconds / member.groups;
    if (each > longest_) say_uncut(whole_.function->name(), each);
    const double fit = each > 0 ? std::floor(longest_ / each) : member.groups;
    const auto most = static_cast<std::uint32_t>(std::clamp<double>(fit, 1, member.groups));
    const std::uint32_t parts = (member.groups + most - 1) / most;
    const std::uint32_t size = (member.groups + parts - 1) / parts;
    for (std::uint32_t first = 0; first < member.groups; first += size) {
      Member part = member;
      part.first = first;
      part.groups = std::min(size, member.groups - first);
      part.seconds = each * part.groups;
      // The rest of a cut member is the first member of the next launch: see Member::first.
      if (first > 0 || slice_.seconds + part.seconds > longest_) close();
      slice_.seconds += part.seconds;
      slice_.members.push_back(std::move(part));
    }
  }

  std::vector<Call> finish() {
    close();
    return std::move(slices_);
  }

 private:
  void close() {
    if (!slice_.members.empty()) slices_.push_back(std::move(slice_));
    clear();
  }

  void clear() {
    slice_ = Call();
    slice_.function = whole_.function;
    slice_.table = whole_.table;
    slice_.is_slice = true;
  }

  const Call& whole_;
  double longest_;
  Call slice_;
  std::vector<Call> slices_;
};

/// The call, or launches of ranges of its threadgroups.
std::vector<Call> cut(Call call, const GpuContext& context) {
  const double longest = context.properties.longest_launch;
  const std::uint64_t groups = groups_of(call);
  if (call.seconds <= longest || groups == 0) return {std::move(call)};
  if (groups == 1 || (call.members.empty() && call.piece == nullptr)) {
    say_uncut(call.function->name(), call.seconds);
    return {std::move(call)};
  }
  const std::string name = call.function->name();
  if (call.members.empty()) call = shared_call({std::move(call)}, context);
  Cutter cutter(call, longest);
  for (const Member& member : call.members) cutter.add(member);
  std::vector<Call> slices = cutter.finish();
  static const base::Log log("kernels");
  log("{}: {:.3g} ms at least, by a model of the GPU: cut into {} launches", name, call.seconds * milliseconds,
      slices.size());
  return slices;
}

}  // namespace

std::vector<Call> sliced(std::vector<Call> calls, const GpuContext& context) {
  std::vector<Call> all;
  for (Call& call : calls) {
    for (Call& slice : cut(std::move(call), context)) all.push_back(std::move(slice));
  }
  return all;
}

}  // namespace russet::gpu
