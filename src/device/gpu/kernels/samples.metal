// needs: fragments.metal
// What a threadgroup that runs a sample brings to threadgroup memory at its start, by threads for which
// brings_for_samples: first start_arrivals; of each group expect_arrivals, its bring_for_samples and
// end_fragment_copies. Before a group is read all threads wait for it, wait_for_arrivals. A prelude may have them in its
// own way (prelude/cuda/arrivals.h).
#ifndef RUSSET_OWN_ARRIVALS

inline bool brings_for_samples(uint) { return true; }
template <uint GROUPS>
void start_arrivals(threadgroup ulong*) {}
/// Of so many vectors of 16 bytes, the last one of each memory begun.
template <uint VECTORS>
void expect_arrivals(threadgroup ulong*) {}
/// From a multiple of 16 to another.
template <uint BYTES>
void bring_for_samples(threadgroup char* memory, device const char* from, threadgroup ulong*, uint thread_id) {
  enum : uint { threads = 1024, rest = BYTES % 16u, whole = BYTES - BYTES % 16u };
  for (uint at = thread_id * 16u; at < whole; at += threads * 16u) copy_vector(memory, at, from + at, true);
  if (thread_id < rest) memory[whole + thread_id] = from[whole + thread_id];
}
/// And for all threads. LATER: groups that may be under way afterwards.
template <uint LATER>
void wait_for_arrivals(threadgroup ulong*) {
  wait_for_fragment_copies<LATER>();
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
}

#endif
