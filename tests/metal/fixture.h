#pragma once
// A metal driver of the test's own on the simulator, which must have nothing to report and leave no object behind.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string_view>

#include "device/gpu/metal/driver.h"
#include "device/gpu/simulator/objects/metal.h"

namespace russet::metal_test {

inline constexpr std::string_view kernels = R"(
struct ScaleValues { uint count; float factor; };

KERNEL(scale, 64, IN(float, x, 0), OUT(float, y, 1), VALUES(ScaleValues, values, 2)) {
  const uint i = group_id.x * 64u + thread_id;
  if (i < values.count) y[i] = x[i] * values.factor;
}

struct PartValues { uint at; };

KERNEL(copy_part, 32, IN(float, x, 0), OUT(float, y, 1), VALUES(PartValues, values, 2)) {
  if (thread_id == 0u) y[values.at] = x[values.at];
}

struct BumpValues { uint count; };

KERNEL(bump, 64, OUT(float, x, 0), VALUES(BumpValues, values, 1)) {
  const uint i = group_id.x * 64u + thread_id;
  if (i < values.count) x[i] = x[i] + 1.0f;
}

struct BumpMember { ulong place; uint count, unused; };

KERNEL(bump_all, 64, OUT(char, b0, 0), OUT(char, b1, 1), OUT(char, b2, 2), TABLE(BumpMember, members, 3)) {
  constant BumpMember& self = members[group_id.x];
  const uint base = uint(self.place >> 56u);
  device char* const start = base == 0u ? b0 : base == 1u ? b1 : b2;
  device float* const x = (device float*)(start + (self.place & 0x00fffffffffffffful));
  if (thread_id < self.count) x[thread_id] = x[thread_id] + 1.0f;
}
)";

enum class Count : std::size_t {};

/// Numbers in a driver's memory.
class Floats {
 public:
  Floats(gpu::Driver& driver, Count count)
      : driver_(driver), count_(static_cast<std::size_t>(count)), memory_(driver.allocate(bytes())) {}
  Floats(gpu::Driver& driver, const std::vector<float>& values) : Floats(driver, Count{values.size()}) {
    write(values);
  }
  /// In memory of somebody else.
  Floats(gpu::Driver& driver, std::byte* memory, Count count)
      : driver_(driver), count_(static_cast<std::size_t>(count)), memory_(memory), owned_(false) {}
  Floats(gpu::Driver& driver, std::byte* memory, const std::vector<float>& values)
      : Floats(driver, memory, Count{values.size()}) {
    write(values);
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  ~Floats() {
    if (owned_) driver_.release(memory_, bytes());
  }

  void write(const std::vector<float>& values) { driver_.upload(memory_, std::as_bytes(std::span(values))); }
  std::vector<float> read() const {
    std::vector<float> values(count_);
    driver_.download(std::as_writable_bytes(std::span(values)), memory_);
    return values;
  }
  std::byte* memory() const { return memory_; }
  std::size_t count() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(float); }

 private:
  gpu::Driver& driver_;
  std::size_t count_;
  std::byte* memory_;
  bool owned_ = true;
};

/// Checks at its end that the simulator found nothing, and that all objects of the test are gone.
class Metal : public testing::Test {
 protected:
  Metal();
  ~Metal() override;

  gpu::Driver& driver() { return *driver_; }
  /// Another driver in the place of this one, after `change` of the settings.
  void restart(const std::function<void()>& change = nullptr);
  /// A folder for caches that is the test's own.
  const std::filesystem::path& cache() const { return cache_; }

  /// y[i + first] = x[i + first] * factor, for `count` elements (all of x by default).
  void scale(const Floats& x, const Floats& y, float factor, std::size_t count = 0, std::size_t first = 0);
  void scale_bytes(std::byte* x, std::byte* y, std::size_t bytes);
  /// y[at] = x[at], as a part of a launch that copies all from 0 on. It may say that an index names no row: `at`.
  void copy_part(const Floats& x, const Floats& y, std::uint32_t at);
  /// What launches take at least, by a model, from now on: 0 if there is none.
  double modelled_seconds = 0;
  /// The seconds that the driver says that so many launches of scale take.
  double time_scale(const Floats& x, const Floats& y, float factor, int times);
  /// Adds 1 to the first elements of each, at most 64, in one launch; `more` of them than there are.
  void bump_all(const std::vector<std::unique_ptr<Floats>>& all, std::uint32_t more = 0);

 private:
  void start();
  void launch(std::byte* x, std::byte* y, std::size_t count, float factor,
              const std::function<void(const gpu::Launch&)>& run = nullptr);

  std::filesystem::path cache_;
  std::vector<std::string> live_;
  std::unique_ptr<gpu::Driver> driver_;
  std::vector<std::shared_ptr<const gpu::Pipeline>> pipelines_;
};

/// Findings of the simulator since the last call, as lines "check: message".
std::vector<std::string> reports();

}  // namespace russet::metal_test
