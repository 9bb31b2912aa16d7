#include "device/gpu/driver/recorded_runs.h"

#include <algorithm>

namespace russet::gpu {
namespace {

/// Loops run few plans, on memory that changes between few places.
constexpr std::size_t most_runs = 16;

}  // namespace

/// A plan that is gone is no other one: what stands for it in the weak pointer is not reused while that is there.
bool RecordedRuns::Known::is_of(const runtime::PlanRun& run) const {
  const bool takes_other_arguments = !is_recorded() || recording.encoded->takes_other_arguments();
  return !plan.owner_before(run.plan) && !run.plan.owner_before(plan) && arena == run.arena &&
         std::ranges::equal(slots, run.slots) &&
         (takes_other_arguments || std::ranges::equal(arguments, run.arguments));
}

RecordedRuns::Known* RecordedRuns::use(const runtime::PlanRun& run, bool recorded) {
  const auto known =
      std::ranges::find_if(runs_, [&](const Known& one) { return one.is_of(run) && (one.is_recorded() || !recorded); });
  if (known == runs_.end()) return nullptr;
  runs_.splice(runs_.begin(), runs_, known);
  return &runs_.front();
}

const Recording* RecordedRuns::find(const runtime::PlanRun& run) {
  const Known* const known = use(run, true);
  return known != nullptr ? &known->recording : nullptr;
}

bool RecordedRuns::note(const runtime::PlanRun& run) {
  if (use(run) != nullptr) return true;
  std::erase_if(runs_, [](const Known& one) { return one.plan.expired(); });
  if (runs_.size() >= most_runs) runs_.pop_back();
  runs_.push_front(
      {run.plan, {run.slots.begin(), run.slots.end()}, run.arena, {run.arguments.begin(), run.arguments.end()}});
  return false;
}

void RecordedRuns::keep(const runtime::PlanRun& run, Recording recording) {
  Known* const known = use(run);
  if (known == nullptr) return;
  // What was launched with arguments that have not come twice will hardly come again.
  const bool comes_again =
      recording.encoded->takes_other_arguments() || std::ranges::equal(known->arguments, run.arguments);
  known->arguments.assign(run.arguments.begin(), run.arguments.end());
  if (comes_again) known->recording = std::move(recording);
}

}  // namespace russet::gpu
