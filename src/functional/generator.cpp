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

Generator& default_generator(DeviceType type) {
  static auto* const generators = new std::array<Generator, device_types>;  // for who records while the process exits
  return (*generators)[static_cast<std::size_t>(type)];
}

void manual_seed(std::uint64_t seed) {
  for (std::size_t kind = 0; kind < device_types; ++kind) {
    default_generator(static_cast<DeviceType>(kind)).manual_seed(seed);
  }
}

}  // namespace russet
