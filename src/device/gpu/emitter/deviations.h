#pragma once
// Sums of squared deviations in rows that registers hold.
#include "compile/group.h"

namespace russet::gpu {

/// The same group with plain sums in place of squared_deviations, which take two sweeps over a row: for its mean, then
/// for the distances from it. The second sum takes off what the mean's rounding is worth (Chan, Golub and LeVeque
/// (1983), "Algorithms for computing the sample variance", the corrected two-pass algorithm). Elements are divided
/// before they are added up: the sum of a row could be too large for a float. Before:   After:
///     v0 = load x; r1 = squared_deviations v0     v0 = load x; r3 = sum (v0 * (1 / n)); v4 = v0 - r3
///                                                 r5 = sum (v4 * v4); r6 = sum v4; r9 = r5 - r6 * r6 * (1 / n)
/// Such an instruction's input has another one for each sweep, so a row is to be kept.
compile::Group with_two_sweeps(const compile::Group& row_group);

}  // namespace russet::gpu
