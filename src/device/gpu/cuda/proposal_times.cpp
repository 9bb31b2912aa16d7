#include "device/gpu/cuda/proposal_times.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "base/log.h"
#include "device/gpu/cuda/handles.h"
#include "device/gpu/cuda/memory.h"

namespace russet::cuda {
namespace {

/// Of one round of a call.
constexpr double long_enough = 2e-3;  // seconds
constexpr double most_repeats = 200;
constexpr int rounds = 5;
/// A difference that noise does not explain.
constexpr double worth_a_change = 0.97;
/// More than caches hold: each run finds its operands in memory.
constexpr std::size_t beyond_caches = std::size_t{160} << 20;

/// Memory of one question: the regions, several times, and a workspace.
class Operands {
 public:
  Operands(const Context& context, std::span<const gpu::Region> regions, std::size_t workspace) {
    std::size_t bytes = 0;
    for (const gpu::Region& region : regions) {
      offsets_.push_back(bytes);
      bytes += (region.bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
    }
    one_ = bytes;
    sets_ = std::clamp<std::size_t>(beyond_caches / std::max<std::size_t>(bytes, 1), 1, 16);
    memory_ = Memory(context).grant(one_ * sets_ + padded_workspace(workspace));
    if (memory_ == nullptr) throw DeviceError("there is no memory to measure proposals in");
    fill(context);
  }

  /// The buffers of run `run`.
  std::vector<std::byte*> addresses(std::size_t run, bool has_workspace) const {
    std::byte* const first = memory_->begin() + run % sets_ * one_;
    std::vector<std::byte*> addresses;
    for (const std::size_t offset : offsets_) addresses.push_back(first + offset);
    if (has_workspace) addresses.push_back(memory_->begin() + one_ * sets_);
    return addresses;
  }

 private:
  /// Numbers between 0.5 and 2 of either sign, whatever the type: zeros would be multiplied with less power.
  void fill(const Context& context) const {
    std::vector<std::uint16_t> numbers(std::size_t{1} << 22);
    std::uint32_t state = 1;
    for (std::uint16_t& number : numbers) {
      state = state * 1664525 + 1013904223;
      number = static_cast<std::uint16_t>((state >> 31) << 15 | 0x3F00U | (state >> 16 & 0xFFU));
    }
    const auto bytes = std::as_bytes(std::span(numbers));
    const Memory memory(context);
    for (std::size_t at = 0; at < one_ * sets_; at += bytes.size()) {
      memory.copy_to_device(memory_->begin() + at, bytes.first(std::min(bytes.size(), one_ * sets_ - at)));
    }
  }

  std::vector<std::size_t> offsets_;
  std::size_t one_ = 0;
  std::size_t sets_ = 1;
  std::unique_ptr<gpu::Block> memory_;
};

/// A call, many times in a graph.
class Repeated {
 public:
  Repeated(const Proposal& proposal, const Operands& operands, std::size_t repeats) : repeats_(repeats) {
    GraphHandle graph;
    check(api().graph_create(graph.address(), 0), "making a graph");
    std::vector<CUgraphNode> before;
    for (std::size_t run = 0; run < repeats; ++run) {
      std::vector<std::byte*> addresses = operands.addresses(run, proposal.workspace_bytes > 0);
      std::vector<void*> arguments;
      for (std::byte*& address : addresses) arguments.push_back(static_cast<void*>(&address));
      before = {proposal.call->add_to(graph.get(), before, {}, arguments)};
    }
    check(api().graph_instantiate(&executable_, graph.get(), 0), "making a graph ready");
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  ~Repeated() { api().graph_exec_destroy(executable_); }

  /// Seconds of one call.
  double run() const {
    const Stream stream;
    const Event start;
    const Event end;
    check(api().event_record(start.get(), stream.get()), "timing the GPU");
    check(api().graph_launch(executable_, stream.get()), "timing the GPU");
    check(api().event_record(end.get(), stream.get()), "timing the GPU");
    check(api().event_synchronize(end.get()), "timing the GPU");
    float milliseconds = 0;
    check(api().event_elapsed_time(&milliseconds, start.get(), end.get()), "timing the GPU");
    return milliseconds * 1e-3 / static_cast<double>(repeats_);
  }

 private:
  CUgraphExec executable_ = nullptr;
  std::size_t repeats_;
};

/// Seconds of a call, of each proposal.
std::vector<double> times_of(std::span<const Proposal> proposals, const Operands& operands) {
  std::vector<std::unique_ptr<const Repeated>> runs;
  for (const Proposal& proposal : proposals) {
    Repeated(proposal, operands, 1).run();  // loads it
    const double seconds = Repeated(proposal, operands, 4).run();
    const double repeats = std::clamp(std::ceil(long_enough / seconds), 2.0, most_repeats);
    runs.push_back(std::make_unique<const Repeated>(proposal, operands, static_cast<std::size_t>(repeats)));
  }
  std::vector<double> least(runs.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round < rounds; ++round) {  // in turn, so that a clock that changes does so for all
    for (std::size_t i = 0; i < runs.size(); ++i) least[i] = std::min(least[i], runs[i]->run());
  }
  return least;
}

}  // namespace

bool measures_proposals() {
  static const bool measures = [] {
    const char* const wish = std::getenv("RUSSET_PROPOSALS");
    const std::string_view word = wish == nullptr ? "" : wish;
    if (!word.empty() && word != "measure") {
      base::log_line("kernels", fmt::format("RUSSET_PROPOSALS={} means nothing: measure, or nothing", word));
    }
    return word == "measure";
  }();
  return measures;
}

std::size_t fastest_of(const Context& context, const LibraryVersion& library, std::string_view question,
                       std::span<const gpu::Region> regions, std::span<const Proposal> proposals) {
  std::size_t workspace = 0;
  for (const Proposal& proposal : proposals) workspace = std::max(workspace, proposal.workspace_bytes);
  const Operands operands(context, regions, workspace);
  const std::vector<double> seconds = times_of(proposals, operands);
  std::size_t best = 0;
  std::string times;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    times += fmt::format("{}{:.2f}", i == 0 ? "" : " ", seconds[i] * 1e6);
    if (seconds[i] < seconds[best]) best = i;
  }
  if (seconds[best] > seconds[0] * worth_a_change) best = 0;
  base::log_line("kernels", fmt::format("proposals of {}: {} [{} us]", to_string(library), question, times));
  return best;
}

}  // namespace russet::cuda
