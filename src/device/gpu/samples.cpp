#include "device/gpu/samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "compile/plan.h"
#include "device/gpu/emitter/emit.h"
#include "device/gpu/templates/contraction.h"

namespace russet::gpu {

compile::SampleTimes modelled_sample_times(const compile::Step& step, std::int64_t samples,
                                           const Properties& properties) {
  // Measured on an H200 in lenet5: what launches that wait for each other take, however little they do; barriers, with
  // what a member loads first; how much of a core's arithmetic its loops reach; how fast a threadgroup reads and writes
  // what is its own, and reads what others read, too.
  constexpr double launch = 3e-6;
  constexpr double launch_of_windows = 6e-6;
  constexpr double start = 0.6e-6;
  constexpr double reached = 0.3;
  constexpr double own_bytes_a_second = 25e9;
  constexpr double shared_bytes_a_second = 80e9;
  const auto* primitive = std::get_if<compile::Primitive>(&step);
  const bool multiplies = compile::factors_of(step).has_value();
  double shared_bytes = 0;
  if (multiplies) {
    const compile::Operand& weight = primitive->inputs[1];
    shared_bytes = static_cast<double>(numel(weight.sizes)) * static_cast<double>(size_of(weight.access.dtype));
  }
  const auto bytes = static_cast<double>(compile::bytes_of(step));
  const double operations = compile::operations_of(step);
  const Chip& chip = properties.chip;
  const double core_operations = chip.teraflops * 1e12 / chip.cores * reached;
  const double rounds = std::ceil(static_cast<double>(samples) / chip.cores);
  const double own_seconds = operations / core_operations + (bytes - shared_bytes) / own_bytes_a_second;
  const double together =
      rounds * (start + own_seconds / static_cast<double>(samples) + shared_bytes / shared_bytes_a_second);
  const bool has_windows =
      multiplies && std::holds_alternative<ops::Window>(primitive->attributes) && !is_pointwise(*primitive);
  const double alone = russet::modelled_seconds(bytes, operations, chip, compile::factors_of(step));
  return {launch, (has_windows ? launch_of_windows : launch) + alone, together};
}

bool divides_by_samples(const Call& call, std::int64_t samples) {
  if (call.piece == nullptr || !call.piece->shares || call.groups[1] != 1 || call.groups[2] != 1) return false;
  const auto count = static_cast<std::uint64_t>(samples);
  constexpr std::uint64_t most_units = std::uint64_t{1} << 31;
  if (call.units.count > 0) {
    return call.piece->arrays.empty() && call.units.count % count == 0 && call.units.count <= most_units;
  }
  return call.groups[0] == count && call.piece->threads == sample_threads;
}

namespace {

/// The memory of a launch, each part of it once.
class Regions {
 public:
  std::size_t add(const Region& region) {
    const auto same = [&](const Region& other) {
      return other.slot == region.slot && other.offset == region.offset && other.bytes == region.bytes &&
             other.argument == region.argument && other.scale == region.scale;
    };
    const auto found = std::ranges::find_if(list, same);
    if (found == list.end()) {
      list.push_back(region);
      return list.size() - 1;
    }
    found->writes |= region.writes;
    return static_cast<std::size_t>(found - list.begin());
  }

  std::vector<Region> list;
};

/// How a kernel binds a region: those of slots that it does not write lie apart from what it writes, since no output
/// takes the memory of a leaf that the same step reads (passes/arena).
std::string_view binding_of(const Region& region, const std::vector<Region>& regions) {
  if (region.writes) return "OUT";
  const bool is_written =
      std::ranges::any_of(regions, [&](const Region& other) { return other.writes && other.slot == region.slot; });
  return is_written ? "IN" : "IN_APART";
}

/// What lies in threadgroup memory of a bundle's samples, as much as there is room for: first what members hand on,
/// then what they all read, if threads need not bring it themselves (which takes as long as it saves).
class HeldMemory {
 public:
  HeldMemory(const compile::Bundle& bundle, const std::vector<Region>& regions, const Properties& properties)
      : bundle_(bundle), brings_(properties.has_bulk_copies), room_(properties.sample_memory) {
    for (const compile::HandedOn& memory : bundle.handed_on) {
      const std::int64_t sample_bytes = static_cast<std::int64_t>(memory.bytes) / bundle.samples;
      if (const auto at = take(sample_bytes)) {
        slots_[memory.slot] = {.binding = {}, .is_held = true, .at = *at, .sample_bytes = sample_bytes};
      }
    }
    for (const Region& region : regions) arguments_.push_back(argument_of(region, regions));
  }

  /// How the kernel is given each region.
  const std::vector<SampleArgument>& arguments() const { return arguments_; }
  std::uint32_t bytes() const { return static_cast<std::uint32_t>(bytes_); }

 private:
  static constexpr std::int64_t alignment = 16;

  std::optional<std::int64_t> take(std::int64_t bytes) {
    const std::int64_t end = divide_up(bytes_ + bytes, alignment) * alignment;
    if (end > room_) return std::nullopt;
    return std::exchange(bytes_, end);
  }

  SampleArgument argument_of(const Region& region, const std::vector<Region>& regions) {
    if (const auto slot = slots_.find(region.slot); slot != slots_.end()) {
      SampleArgument argument = slot->second;
      argument.at += region.offset;
      return argument;
    }
    SampleArgument argument{.binding = binding_of(region, regions)};
    const bool is_shared = std::ranges::find(bundle_.shared, region.slot) != bundle_.shared.end();
    if (!brings_ || !is_shared || region.argument >= 0 || region.offset % alignment != 0) return argument;
    if (const auto at = take(static_cast<std::int64_t>(region.bytes))) {
      argument.is_held = true;
      argument.at = *at;
      argument.bytes = region.bytes;
    }
    return argument;
  }

  const compile::Bundle& bundle_;
  bool brings_;
  std::int64_t room_;
  std::int64_t bytes_ = 0;
  std::map<std::int32_t, SampleArgument> slots_;  // that are handed on
  std::vector<SampleArgument> arguments_;
};

std::vector<std::uint64_t> words_of(const Values& values) {
  std::vector<std::uint64_t> words((values.bytes.size() + 7) / 8);
  std::memcpy(words.data(), values.bytes.data(), values.bytes.size());
  return words;
}

}  // namespace

std::optional<Call> sample_call(const std::vector<Call>& calls, const compile::Bundle& bundle,
                                const GpuContext& context) {
  const std::int64_t samples = bundle.samples;
  std::map<std::string, std::size_t> numbers;  // of pieces, by the names of their functions
  std::vector<Piece> pieces;
  std::vector<SamplePart> parts;
  Regions regions;
  Call all;
  for (const Call& call : calls) {
    const auto [number, is_new] = numbers.try_emplace(call.function->name(), pieces.size());
    if (is_new) pieces.push_back(*call.piece);
    SamplePart part{.piece = number->second, .arguments = {}, .groups = {call.groups[0], call.groups[1]}};
    for (const Region& region : call.regions) part.arguments.push_back(regions.add(region));
    if (call.units.count > 0) {
      part.unit = call.units.threads;
      part.units = static_cast<std::uint32_t>(call.units.count / static_cast<std::uint64_t>(samples));
    }
    if (call.values.patches.empty()) {
      part.values = words_of(call.values);
    } else {
      all.values.align();
      all.values.append(call.values);
    }
    all.seconds += call.seconds;
    parts.push_back(std::move(part));
  }
  all.values.align();
  const HeldMemory held(bundle, regions.list, context.properties);
  for (std::size_t i = 0; i < regions.list.size(); ++i) {
    if (!held.arguments()[i].binding.empty()) all.regions.push_back(regions.list[i]);
  }
  if (all.regions.size() > max_sample_buffers || all.values.bytes.size() > max_value_bytes) return std::nullopt;
  all.function = context.library.add(source_of_samples(pieces, parts, held.arguments(), sample_threads, held.bytes()));
  all.groups = {static_cast<std::uint32_t>(samples), 1, 1};
  return all;
}

}  // namespace russet::gpu
