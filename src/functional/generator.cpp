#include <fmt/format.h>
#include <russet/error.h>
#include <russet/random.h>
#include <russet/random_part.h>

#include <array>

#include "graph/capture.h"

namespace russet {

void Generator::manual_seed(std::uint64_t seed) { set_state({seed, 0}); }

Generator::State Generator::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void Generator::set_state(const State& state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
}

Generator::State Generator::next() {
  const std::lock_guard lock(mutex_);
  const State current = state_;
  ++state_.offset;
  return current;
}

Generator& default_generator(DeviceType type) {
  static auto* const generators = new std::array<Generator, device_types>;  // for who records while the process exits
  return (*generators)[static_cast<std::size_t>(type)];
}

void manual_seed(std::uint64_t seed) {
  for (std::size_t kind = 0; kind < device_types; ++kind) {
    default_generator(static_cast<DeviceType>(kind)).manual_seed(seed);
  }
}

namespace {

thread_local const RandomPart* innermost_part = nullptr;

}  // namespace

RandomPart::RandomPart(std::int64_t first, std::int64_t count) : first_(first), count_(count), around_(innermost_part) {
  if (first < 0 || count < 1) throw ValueError(fmt::format("RandomPart: {} samples from sample {} on", count, first));
  innermost_part = this;
  graph::note_changed_setting();
}

RandomPart::~RandomPart() {
  innermost_part = around_;
  graph::note_changed_setting();
}

std::int64_t RandomPart::numbers_before(const Shape& sizes) {
  if (innermost_part == nullptr || sizes.empty() || sizes[0] % innermost_part->count_ != 0) return 0;
  return numel(sizes) / innermost_part->count_ * innermost_part->first_;
}

}  // namespace russet
