#include "runtime/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/log.h"
#include "ops/table.h"

namespace russet::runtime {
namespace {

struct Active {
  std::mutex mutex;
  std::shared_ptr<Profiler> profiler;
};
Active& the_active() {
  static auto* const active = new Active;
  return *active;
}

double now_us() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

/// Has a driver keep times for as long as it lives.
class KeptTimes {
 public:
  explicit KeptTimes(DeviceDriver& driver) : driver_(driver) { driver_.keep_times(true); }
  ~KeptTimes() { driver_.keep_times(false); }
  KeptTimes(const KeptTimes&) = delete;
  KeptTimes& operator=(const KeptTimes&) = delete;

 private:
  DeviceDriver& driver_;
};

}  // namespace

std::shared_ptr<Profiler> Profiler::active() {
  const std::lock_guard lock(the_active().mutex);
  return the_active().profiler;
}

void Profiler::activate(std::shared_ptr<Profiler> profiler) {
  const std::lock_guard lock(the_active().mutex);
  the_active().profiler = std::move(profiler);
}

std::vector<StepTiming> Profiler::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

void Profiler::step(const compile::Plan& plan, std::size_t index, DeviceDriver& driver,
                    const std::function<void()>& run) {
  const KeptTimes kept(driver);
  const double busy = driver.busy_seconds();
  const double start = now_us();
  run();
  driver.synchronize();
  const double end = now_us();
  const double worked = 1e6 * (driver.busy_seconds() - busy);
  const compile::Step& step = plan.program.steps[index];
  const std::lock_guard lock(mutex_);
  records_.push_back({plan.kernels[index]->name(), describe(step), start, worked > 0 ? worked : end - start,
                      plan.step_bytes[index], compile::operations_of(step)});
}

std::string Profiler::chrome_trace() const {
  nlohmann::json events = nlohmann::json::array();
  for (const StepTiming& record : records()) {
    events.push_back({{"name", record.name},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", 0},
                      {"ts", record.start_us},
                      {"dur", record.duration_us},
                      {"args", {{"step", record.detail}, {"bytes", record.bytes}, {"operations", record.operations}}}});
  }
  return nlohmann::json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump();
}

namespace {

std::string describe_group(const compile::Group& group) {
  constexpr const char* kinds[] = {"group", "row group", "column group"};
  std::string text = fmt::format("{} {}", kinds[static_cast<int>(group.kind)], to_string(group.space));
  for (const compile::Instruction& in : group.code) {
    if (in.op != ops::Op::leaf) text += fmt::format(" {}", ops::row(in.op).name);
  }
  return text;
}

/// A description without what stands in brackets.
std::string without_sizes(std::string_view text) {
  std::string kept;
  int depth = 0;
  for (const char letter : text) {
    depth += letter == '[' ? 1 : 0;
    if (depth == 0) kept += letter;
    depth -= letter == ']' ? 1 : 0;
  }
  return kept;
}

/// What is in a bundle: each kind once, with the sizes of its first member.
std::string describe_bundle(const compile::Bundle& bundle) {
  constexpr std::size_t most_kinds = 16;
  struct Kind {
    std::string key, first;
    std::size_t members = 0;
    std::set<std::string> sizes{};
  };
  std::vector<Kind> kinds;
  for (const compile::Step& member : bundle.members) {
    const std::string line = describe(member);
    const std::string key = without_sizes(line);
    auto kind = std::ranges::find(kinds, key, &Kind::key);
    if (kind == kinds.end()) kind = kinds.insert(kind, {key, line});
    ++kind->members;
    kind->sizes.insert(line);
  }
  std::string text = fmt::format("bundle of {}", bundle.members.size());
  for (std::size_t i = 0; i < std::min(kinds.size(), most_kinds); ++i) {
    const Kind& kind = kinds[i];
    text += fmt::format("{}{} {}", i == 0 ? ": " : "; ", kind.members, kind.first);
    if (kind.sizes.size() > 1) text += fmt::format(" in {} sizes", kind.sizes.size());
  }
  if (kinds.size() > most_kinds) text += fmt::format("; {} further kinds", kinds.size() - most_kinds);
  return text;
}

}  // namespace

std::string describe(const compile::Step& step) {
  if (const auto* group = std::get_if<compile::Group>(&step)) return describe_group(*group);
  if (const auto* stage = std::get_if<compile::Stage>(&step)) {
    return (stage->number == 0 ? "parts of " : "results of ") +
           std::visit([](const auto& whole) { return describe(whole); }, stage->whole);
  }
  if (const auto* bundle = std::get_if<compile::Bundle>(&step)) return describe_bundle(*bundle);
  const auto& primitive = std::get<compile::Primitive>(step);
  std::string text(ops::row(primitive.op).name);
  for (std::size_t i = 0; i < primitive.inputs.size(); ++i) {
    text += fmt::format("{}{}", i ? " x " : " ", to_string(primitive.inputs[i].sizes));
  }
  text += fmt::format(" -> {} {}", name_of(primitive.output.access.dtype), to_string(primitive.output.sizes));
  for (const compile::Companion& companion : primitive.companions) {
    text += fmt::format(" and {}", to_string(companion.output.sizes));
  }
  for (std::size_t i = 0; i < primitive.prologues.size(); ++i) {
    const compile::Group& prologue = primitive.prologues[i];
    if (prologue.code.empty()) continue;
    text += fmt::format(" + {}prologue of input {}", compile::is_storing(prologue) ? "storing " : "", i);
  }
  if (!primitive.epilogue.code.empty()) text += " + epilogue";
  return text;
}

std::string describe_steps(const compile::Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.program.steps.size(); ++i) {
    text += fmt::format("{:4} {:24} {:>12} B  {}\n", i, plan.kernels[i]->name(), plan.step_bytes[i],
                        describe(plan.program.steps[i]));
    if (!base::log_enabled("code")) continue;
    compile::for_each_member(plan.program.steps[i], [&](const compile::Step& member) {
      if (const compile::Group* group = compile::group_of(member)) text += to_string(*group);
    });
  }
  return text;
}

}  // namespace russet::runtime
