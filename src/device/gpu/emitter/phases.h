#pragma once
// Phases: the sweeps over memory that a group takes, and which instructions run in each.
#include <vector>

#include "compile/group.h"

namespace russet::gpu {

/// One sweep over the elements. The results of its reductions are available to the phases after it.
struct Phase {
  std::vector<int> full;         // instructions to run for each element, in order; loads and kept values included
  std::vector<int> stores;       // full stores
  std::vector<int> reductions;   // they take what this phase computes
  std::vector<int> column_sums;  // likewise, of a row group
  std::vector<int> reduced;      // instructions on what reductions gave (or on nothing), before the phase starts
};

struct Phases {
  std::vector<Phase> list;          // at least one; the last may have nothing but `reduced`
  std::vector<bool> kept;           // full values that a later phase reads: held in registers
  std::vector<int> reduced_stores;  // after the last phase
  int kept_count = 0;
  bool elements_read_reduced = false;  // full instructions of the first phase read reduced values
};

/// `keep`: values that a later phase reads are kept, unless all rows load the same; otherwise each phase computes them
/// again.
Phases make_phases(const compile::Group& group, bool keep);

/// Whether the instruction is a constant or scalar: the same for all elements, so it belongs to no phase.
bool is_uniform(const compile::Instruction& instruction);

}  // namespace russet::gpu
