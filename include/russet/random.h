#pragma once
// Generators of random numbers: a seed, and an offset that advances by one with every random operator.
#include <russet/device.h>
#include <cstdint>
#include <mutex>

namespace russet {

/// Philox, indexed by (seed, offset, position): the numbers are the same on every device. Safe to share by threads.
class Generator {
 public:
  struct State {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
    bool operator==(const State&) const = default;
  };

  explicit Generator(std::uint64_t seed = 0) : state_{seed, 0} {}

  /// Starts over with this seed.
  void manual_seed(std::uint64_t seed);
  std::uint64_t seed() const { return state().seed; }
  /// All there is to know, for checkpoints.
  State state() const;
  void set_state(const State& state);
  /// The seed, and the offset for one operator; the offset advances.
  State next();

 private:
  mutable std::mutex mutex_;
  State state_;
};

/// The generator that random functions use on a kind of device unless they are given one.
Generator& default_generator(DeviceType type);
/// Seeds the default generators of all kinds of device.
void manual_seed(std::uint64_t seed);

}  // namespace russet
