#include "device/gpu/tuner.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "base/log.h"

namespace russet::gpu {
namespace {

constexpr int rounds = 4;                // of which the best counts
constexpr double long_enough = 1e-3;     // seconds that one measurement should take
constexpr int most_repeats = 32;         // of a short kernel in one measurement
constexpr double worth_a_change = 0.97;  // of the table's time
constexpr double never = std::numeric_limits<double>::infinity();

const base::Log& log() {
  static const base::Log channel("kernels");
  return channel;
}

/// Memory that stands for the tensors of a step, whose kernels all touch the same regions.
class StandIns {
 public:
  StandIns(Driver& driver, const Tuner::MeasuringMemory& memory, std::span<const KernelPtr> kernels) {
    std::size_t scratch = 0;
    for (const KernelPtr& kernel : kernels) {
      scratch = std::max(scratch, kernel->scratch_bytes());
      for (const Call& call : static_cast<const GpuKernel&>(*kernel).calls()) note(call);
    }
    std::size_t total = scratch;
    for (const auto& [slot, part] : parts_) total += part.end - part.begin;
    memory.pool.check(total, 0);
    scratch_ = memory.pool.allocate(memory.device, scratch);
    for (const auto& [slot, part] : parts_) {
      buffers_.push_back(memory.pool.allocate(memory.device, part.end - part.begin));
      fill(driver, *buffers_.back(), part.fill);
      if (slots_.size() <= static_cast<std::size_t>(slot)) slots_.resize(static_cast<std::size_t>(slot) + 1, nullptr);
      // Regions hold offsets from the start of the slot; only the touched part of the slot is allocated.
      slots_[static_cast<std::size_t>(slot)] = buffers_.back()->data() - part.begin;
    }
  }

  compile::Bindings bindings() const { return {slots_.data(), arguments_.data(), scratch_->data()}; }

 private:
  /// Bytes [begin, end) of a slot, and what they hold.
  struct Part {
    std::size_t begin = std::numeric_limits<std::size_t>::max();
    std::size_t end = 0;
    std::byte fill{};
  };

  void note(const Call& call) {
    constexpr std::size_t alignment = 64;  // of what the regions' offsets count from
    const auto need = [&](std::int32_t argument) {
      if (argument >= 0) arguments_.resize(std::max(arguments_.size(), static_cast<std::size_t>(argument) + 1), 0);
    };
    for (const Patch& patch : call.values.patches) need(patch.argument);
    for (std::size_t i = 0; i < call.regions.size(); ++i) {
      const Region& region = call.regions[i];
      if (region.slot < 0) continue;
      need(region.argument);
      Part& part = parts_[region.slot];
      const auto offset = static_cast<std::size_t>(region.offset);
      part.begin = std::min(part.begin, offset / alignment * alignment);
      part.end = std::max(part.end, offset + region.bytes);
      // Small positive numbers in every floating type; a bool is 0 or 1.
      const bool boolean = call.piece != nullptr && call.piece->arguments[i].type == "bool";
      part.fill = boolean ? std::byte{1} : std::byte{0x3c};
    }
  }

  static void fill(Driver& driver, graph::Buffer& buffer, std::byte value) {
    const std::vector<std::byte> bytes(std::min<std::size_t>(buffer.bytes(), std::size_t{1} << 20), value);
    for (std::size_t at = 0; at < buffer.bytes(); at += bytes.size()) {
      driver.upload(buffer.data() + at, std::span(bytes).first(std::min(bytes.size(), buffer.bytes() - at)));
    }
  }

  std::map<std::int32_t, Part> parts_;  // by slot
  std::vector<std::uint64_t> arguments_{0};
  Ref<graph::Buffer> scratch_;
  std::vector<Ref<graph::Buffer>> buffers_;
  std::vector<std::byte*> slots_;
};

/// A kernel that is measured: what it launches, and the best time so far.
struct Runner {
  std::vector<std::unique_ptr<FilledCall>> calls;
  double seconds = never;
  int repeats = 1;

  Runner(const GpuKernel& kernel, const compile::Bindings& bindings) {
    for (const Call& call : kernel.calls()) {
      calls.push_back(std::make_unique<FilledCall>());
      calls.back()->fill(call, bindings);
    }
  }

  double run(Driver& driver) const {
    std::vector<Launch> launches;
    for (int i = 0; i < repeats; ++i) {
      for (const auto& call : calls) launches.push_back(call->launch());
    }
    return driver.time(launches) / repeats;
  }
};

/// Builds what the kernels need, together; if that fails, those that can be built. Says which.
std::vector<bool> build(Library& library, std::span<const KernelPtr> kernels) {
  std::vector<FunctionPtr> all;
  for (const KernelPtr& kernel : kernels) {
    for (const Call& call : static_cast<const GpuKernel&>(*kernel).calls()) all.push_back(call.function);
  }
  try {
    library.build(all);
    return std::vector<bool>(kernels.size(), true);
  } catch (const DeviceError&) {
  }
  std::vector<bool> built;
  for (const KernelPtr& kernel : kernels) {
    try {
      for (const Call& call : static_cast<const GpuKernel&>(*kernel).calls()) library.build({&call.function, 1});
      built.push_back(true);
    } catch (const DeviceError& error) {
      log()("{} is not measured: {}", kernel->name(), error.what());
      built.push_back(false);
    }
  }
  return built;
}

}  // namespace

Tuning wanted_tuning() {
  const char* const wish = std::getenv("RUSSET_TUNE");
  const std::string_view word = wish == nullptr ? "" : wish;
  if (word == "on") return Tuning::measured;
  if (word == "off") return Tuning::off;
  if (!word.empty()) base::log_line("kernels", fmt::format("RUSSET_TUNE={} means nothing: on or off", word));
  return Tuning::finds;
}

Tuner::Tuner(const GpuContext& context, Driver& driver, Tuning tuning, const std::filesystem::path& folder,
             std::function<MeasuringMemory()> memory)
    : context_(context),
      driver_(driver),
      tuning_(tuning),
      memory_(std::move(memory)),
      finds_(tuning == Tuning::off ? std::filesystem::path() : folder, context.properties) {}

Tile Tuner::advise(const TileQuestion& question) {
  if (tuning_ == Tuning::off || question.candidates.size() < 2) return {};
  const std::string key = question.key();
  const std::lock_guard lock(mutex_);
  if (const Find* const found = finds_.find(key)) {
    const bool possible =
        std::find(question.candidates.begin(), question.candidates.end(), found->tile) != question.candidates.end();
    if (possible) return found->tile;
  }
  if (tuning_ != Tuning::measured || !driver_.runs() || finds_.full() || passed_over_.contains(key)) return {};
  const Find found = measure(question, key);
  if (found.tile.rows == 0) {
    passed_over_.insert(key);
  } else {
    finds_.add(key, found);
  }
  return found.tile;
}

Find Tuner::measure(const TileQuestion& question, const std::string& key) {
  std::vector<KernelPtr> kernels;
  for (const Tile& tile : question.candidates) kernels.push_back(question.make(tile));
  const std::vector<bool> built = build(context_.library, kernels);
  std::vector<Runner> runners;
  try {
    const StandIns memory(driver_, memory_(), kernels);
    for (const KernelPtr& kernel : kernels) {
      runners.emplace_back(static_cast<const GpuKernel&>(*kernel), memory.bindings());
    }
    // The first run warms up, and tells how often a short kernel is to be run. Then all take turns, so that a clock
    // that changes does so for all.
    for (int round = 0; round <= rounds; ++round) {
      for (std::size_t i = 0; i < runners.size(); ++i) {
        if (!built[i]) continue;
        Runner& runner = runners[i];
        const double seconds = runner.run(driver_);
        if (round > 0) {
          runner.seconds = std::min(runner.seconds, seconds);
        } else if (seconds > 0) {
          runner.repeats = static_cast<int>(std::clamp(std::ceil(long_enough / seconds), 1.0, double{most_repeats}));
        }
      }
    }
  } catch (const OutOfMemoryError& error) {
    log()("{}: tiles are not measured: {}", key, error.what());
    return {};
  } catch (const DeviceError& error) {
    log()("{}: tiles are not measured: {}", key, error.what());
    return {};
  }
  if (!(runners[0].seconds > 0)) {
    log()("{}: tiles are not measured: the GPU does not tell its time", key);
    return {};
  }
  std::string times;
  std::size_t best = 0;
  for (std::size_t i = 0; i < runners.size(); ++i) {
    times +=
        fmt::format("{}{} {:.1f} us", i == 0 ? "" : ", ", to_string(question.candidates[i]), runners[i].seconds * 1e6);
    if (runners[i].seconds < runners[best].seconds) best = i;
  }
  if (runners[best].seconds > runners[0].seconds * worth_a_change) best = 0;
  log()("{}: {}: {} is taken", key, times, to_string(question.candidates[best]));
  return {question.candidates[best], runners[best].seconds, runners[0].seconds};
}

}  // namespace russet::gpu
