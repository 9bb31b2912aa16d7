#include <russet/random.h>

#include <array>

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

namespace {

constexpr std::size_t kinds = static_cast<std::size_t>(DeviceType::null) + 1;

}  // namespace

Generator& default_generator(DeviceType type) {
  static std::array<Generator, kinds> generators;
  return generators[static_cast<std::size_t>(type)];
}

void manual_seed(std::uint64_t seed) {
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    default_generator(static_cast<DeviceType>(kind)).manual_seed(seed);
  }
}

}  // namespace russet
