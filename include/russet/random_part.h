#pragma once
// Random numbers of a part of a batch.
#include <russet/shape.h>
#include <cstdint>

namespace russet {

/// While one lives, random functions of this thread draw for a part of a batch what they would draw for it in the
/// whole: `count` samples from sample `first` on. A tensor whose first axis is a multiple of `count` has these samples
/// along it; of any other the whole draw is the same for all parts. They must be given the generator's state before the
/// whole. Throws ValueError for a negative `first`, or a `count` below 1.
class RandomPart {
 public:
  RandomPart(std::int64_t first, std::int64_t count);
  ~RandomPart();
  RandomPart(const RandomPart&) = delete;
  RandomPart& operator=(const RandomPart&) = delete;

  /// How many numbers of the whole come before those of a tensor, by the innermost of this thread; 0 without one.
  static std::int64_t numbers_before(const Shape& sizes);

 private:
  std::int64_t first_, count_;
  const RandomPart* around_;
};

}  // namespace russet
