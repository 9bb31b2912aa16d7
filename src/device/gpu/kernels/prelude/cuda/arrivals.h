#pragma once
// Barriers in shared memory that wait for copies, and copies of bytes that side by side lie in memory (PTX
// ISA 9.7.9.25, cp.async.bulk): the work of samples.metal. Of compute capability 9.0 alone, where NVRTC compiles for
// sm_90a.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define RUSSET_OWN_ARRIVALS

namespace russet_cuda {

// Barriers in shared memory (PTX ISA 9.7.13.15, mbarrier): a phase ends when so many threads have arrived and the bytes
// that they expect are there.
inline void make_barrier(uint barrier, uint arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
inline void arrive(uint barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
inline void arrive_expecting(uint barrier, uint bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/// Until the phase of this parity has ended, which is the current one or the one before.
inline void wait_for_phase(uint barrier, uint parity) {
  asm volatile(
      "{ .reg .pred ends; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 ends, [%0], %1; @ends bra DONE; bra AGAIN; "
      "DONE: }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
/// Has barriers that were made seen by copies.
inline void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Copies a multiple of 16 bytes, from such a place to such a one; the barrier's phase waits for them.
inline void bring_bytes(uint to, const char* from, uint bytes, uint barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

}  // namespace russet_cuda

/// One does for all, of a warp that is likely to have little else to do.
inline bool brings_for_samples(uint thread_id) { return thread_id == blockDim.x - 32; }
template <uint GROUPS>
inline void start_arrivals(ulong* arrivals) {
  UNROLL for (uint i = 0; i < GROUPS; ++i) russet_cuda::make_barrier(russet_cuda::shared_address(arrivals + i), 1);
  russet_cuda::show_barriers();
}
template <uint VECTORS>
inline void expect_arrivals(ulong* arrival) {
  russet_cuda::arrive_expecting(russet_cuda::shared_address(arrival), VECTORS * 16);
}
// A last vector may go on where the memory's own bytes have ended: it is granted in multiples of 64.
template <uint BYTES>
inline void bring_for_samples(char* memory, const char* from, ulong* arrival, uint) {
  russet_cuda::bring_bytes(russet_cuda::shared_address(memory), from, (BYTES + 15) / 16 * 16,
                           russet_cuda::shared_address(arrival));
}
template <uint LATER>
inline void wait_for_arrivals(ulong* arrival) {
  __syncthreads();
  russet_cuda::wait_for_phase(russet_cuda::shared_address(arrival), 0);
}

#endif
