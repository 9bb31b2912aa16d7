#include "calls.h"

#include "checked/hooks.h"
#include "executor.h"
#include "functions.h"
#include "machine.h"

#define RUSSET_SIMULATOR_HOST
#include "device/gpu/kernels/prelude/simulator/trampolines.h"

namespace russet::simulator {
namespace {

void russet_barrier(unsigned spaces) { Executor::running().barrier(spaces, __builtin_return_address(0)); }

void russet_simdgroup_barrier(unsigned spaces) {
  Executor::running().simdgroup_barrier(spaces, __builtin_return_address(0));
}

void russet_simdgroup_function(Combine combine, const void* in, void* out) {
  Executor::running().simdgroup_function(combine, in, out, __builtin_return_address(0));
}

void russet_matrix_access(const void* corner, unsigned long elements_per_row, bool transpose) {
  Executor::running().matrix_access({__builtin_return_address(0), corner, elements_per_row, transpose});
}

void russet_bad_lane(unsigned lane, unsigned given) { Executor::running().report_lane(lane, given); }

unsigned russet_lane() { return Executor::running().threadgroup().current % lanes; }

}  // namespace

void fill_table(void** table, bool checked) {
#define RUSSET_FILL(name, index) table[index] = reinterpret_cast<void*>(name);
  RUSSET_CALLS(RUSSET_FILL)
#undef RUSSET_FILL
  fill_functions(table, options().coarse);
  if (checked) fill_hooks(table);
}

}  // namespace russet::simulator
