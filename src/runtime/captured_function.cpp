// Captured functions: when a call is recorded, and when what was captured runs again.
#include <russet/autocast.h>
#include <russet/autograd.h>
#include <russet/captured_function.h>
#include <russet/random.h>
#include <russet/runtime.h>

#include <algorithm>
#include <array>
#include <list>
#include <optional>
#include <utility>

#include "base/log.h"
#include "graph/capture.h"
#include "graph/recorder.h"

namespace russet {
namespace {

using graph::Capture;
using graph::CapturedWork;

/// Of inputs that differ in what Signature has.
constexpr std::size_t most_works = 8;
/// So many calls without a replay, and captures, which take time, are tried now and then: a few in a row.
constexpr int eager_attempts = 16;
constexpr int attempts_in_a_row = 4;

/// What a recording depends on besides the function.
struct Signature {
  struct Input {
    DType dtype;
    Device device;
    graph::Geometry geometry;
    Shape memory;  // of the cell
    bool requires_grad;
    bool operator==(const Input&) const = default;
  };
  std::vector<Input> inputs;
  bool grad_mode = is_grad_enabled();
  std::optional<DType> autocast = is_autocast_enabled() ? std::optional(autocast_type()) : std::nullopt;
  std::uint64_t settings = graph::settings_version.load();
  bool operator==(const Signature&) const = default;
};

Signature signature_of(const std::vector<Tensor>& inputs) {
  Signature signature;
  for (const Tensor& input : inputs) {
    const DType dtype = input.dtype();  // says so if there is no tensor
    const graph::TensorState& state = *input.state();
    signature.inputs.push_back(
        {dtype, input.device(), state.geometry, state.cell->value()->shape, input.requires_grad()});
  }
  return signature;
}

using GeneratorStates = std::array<Generator::State, device_types>;

GeneratorStates generator_states() {
  GeneratorStates states;
  for (std::size_t kind = 0; kind < device_types; ++kind) {
    states[kind] = default_generator(static_cast<DeviceType>(kind)).state();
  }
  return states;
}

/// What calls with one signature recorded.
struct CapturedCalls {
  Signature signature;
  std::unique_ptr<CapturedWork> work{};  // of the last recorded call
  std::uint64_t seed = 0;
  std::uint64_t drawn = 0;  // random offsets of a call
  bool is_ready = false;    // two calls in a row recorded this

  /// Runs what was captured; nothing if that cannot be.
  std::optional<std::vector<Tensor>> run_again(const std::vector<Tensor>& inputs) {
    Generator& generator = default_generator(work->device().type);
    const std::uint64_t offset = generator.state().offset;
    if (generator.state().seed != seed) return std::nullopt;
    return work->run(inputs, [&] {
      if (drawn > 0) generator.set_state({seed, offset + drawn});
      return offset;
    });
  }

  /// Takes what one more call recorded. Returns why the next one will be recorded, too; empty if it will not.
  std::string add(std::unique_ptr<CapturedWork> next, const GeneratorStates& before, const GeneratorStates& after) {
    const auto kind = static_cast<std::size_t>(next->device().type);
    seed = before[kind].seed;
    const std::uint64_t drawn_before = std::exchange(drawn, after[kind].offset - before[kind].offset);
    GeneratorStates expected = before;
    expected[kind].offset += drawn;
    if (after != expected || !next->note_draws(before[kind].offset, drawn)) {
      return "it seeds a generator, or draws from another device's";
    }
    is_ready = work && drawn == drawn_before && next->agrees_with(*work);
    const bool is_first = !work;
    work = std::move(next);
    if (is_ready) return "";
    return is_first ? "its work is captured once two calls in a row record the same"
                    : "two calls recorded other work, numbers or tensors";
  }
};

const base::Log& capture_log() {
  static const base::Log log("capture");
  return log;
}

}  // namespace

struct CapturedFunction::State {
  Function function;
  std::list<CapturedCalls> calls{};  // those that were used last first
  std::uint64_t replays = 0;
  int recorded_in_a_row = 0;
  std::string why_recorded{};

  CapturedCalls& calls_with(Signature signature) {
    std::erase_if(calls, [&](const CapturedCalls& one) { return one.signature.settings != signature.settings; });
    const auto found = std::ranges::find(calls, signature, &CapturedCalls::signature);
    if (found != calls.end()) {
      calls.splice(calls.begin(), calls, found);
    } else {
      calls.push_front({std::move(signature)});
      if (calls.size() > most_works) calls.pop_back();
    }
    return calls.front();
  }

  std::vector<Tensor> record_only(const std::vector<Tensor>& inputs) {
    std::vector<Tensor> results;
    in_one_plan([&] { results = function(inputs); });
    return results;
  }

  bool tries_to_capture() {
    const int number = recorded_in_a_row++;
    return number < eager_attempts || number % eager_attempts < attempts_in_a_row;
  }

  std::vector<Tensor> record(CapturedCalls& known, const std::vector<Tensor>& inputs) {
    const GeneratorStates before = generator_states();
    Capture capture(inputs);
    std::vector<Tensor> results;
    {
      const graph::Deferral deferral;
      results = function(inputs);
    }
    for (const Tensor& result : results) {
      if (result.requires_grad()) capture.decline("it returns a tensor that requires a gradient");
    }
    std::unique_ptr<CapturedWork> work = capture.finish(results);
    known.signature.settings = graph::settings_version.load();  // the call itself may have changed some
    why_recorded = work ? known.add(std::move(work), before, generator_states()) : capture.why_declined();
    capture_log()("recorded a call: {}", why_recorded.empty() ? "the same as the one before" : why_recorded);
    return results;
  }
};

CapturedFunction::CapturedFunction(Function function) : state_(new State{std::move(function)}) {}
CapturedFunction::~CapturedFunction() = default;
CapturedFunction::CapturedFunction(CapturedFunction&&) noexcept = default;
CapturedFunction& CapturedFunction::operator=(CapturedFunction&&) noexcept = default;

std::vector<Tensor> CapturedFunction::operator()(const std::vector<Tensor>& inputs) {
  State& s = *state_;
  if (Capture::current() || !graph::Recorder::current().obeys_marks()) {
    s.why_recorded = "it is a part of other work";
    return s.function(inputs);
  }
  flush();
  CapturedCalls& known = s.calls_with(signature_of(inputs));
  if (known.is_ready) {
    if (std::optional<std::vector<Tensor>> results = known.run_again(inputs)) {
      ++s.replays;
      s.recorded_in_a_row = 0;
      s.why_recorded.clear();
      return std::move(*results);
    }
    known = {known.signature};
  }
  return s.tries_to_capture() ? s.record(known, inputs) : s.record_only(inputs);
}

std::uint64_t CapturedFunction::replays() const { return state_->replays; }
const std::string& CapturedFunction::why_recorded() const { return state_->why_recorded; }
void CapturedFunction::reset() { state_->calls.clear(); }

Tensor live_number(const std::function<double()>& value, const TensorOptions& options) {
  graph::NodeRef node = graph::scalar(value(), options.dtype, options.device);
  if (Capture* const capture = Capture::current()) capture->note_number(node, value);
  return graph::wrap(std::move(node));
}

void in_each_call(std::function<void()> before, std::function<void()> after) {
  if (Capture* const capture = Capture::current()) capture->note_effect({std::move(before), std::move(after)});
}

void note_changed_setting() { graph::note_changed_setting(); }

}  // namespace russet
