#pragma once
// The inner loops of pools: one row of results, lane by lane.
#include <russet/dtype.h>

#include "device/cpu/taps.h"

namespace russet::cpu {

/// A row of `width` results with `lanes` neighbours each; `row` and `columns` say which taps count. Steps are in
/// elements of the source (`from`) and of the result (`to`).
struct PoolRow {
  TapRun row;
  const TapRun* columns = nullptr;
  std::int64_t width = 0, lanes = 1;
  std::int64_t from_row = 0, from_column = 0, to_column = 0;
  std::int64_t taps_across = 1;
  // Steps in the array of chosen taps, for maxima and their gradients.
  std::int64_t chosen_row = 0, chosen_column = 0;
};

template <class Element>
struct PoolLoops {
  /// The loops need at least this many lanes.
  std::int64_t least_lanes = 1;
  /// to = sum over the taps.
  void (*sum)(const PoolRow& row, const Element* from, Element* to) = nullptr;
  /// to = the first maximum over the taps, NaN being the largest; chosen (unless null) = its tap. 0 and -1 if there is
  /// no tap.
  void (*maximum)(const PoolRow& row, const Element* from, Element* to, std::int32_t* chosen) = nullptr;
  /// to = sum over those windows that chose the element as their maximum.
  void (*spread)(const PoolRow& row, const Element* from, const std::int32_t* chosen, Element* to) = nullptr;
};

/// Vectors of float32, float16 and bfloat16.
PoolLoops<float> pool_vectors(float);
PoolLoops<float16> pool_vectors(float16);
PoolLoops<bfloat16> pool_vectors(bfloat16);

}  // namespace russet::cpu
