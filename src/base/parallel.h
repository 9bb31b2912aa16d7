#pragma once
// The one pool of threads: OpenMP's, which oneDNN shares.
#include <cstdint>

#include "base/function_ref.h"

namespace russet::base {

/// The number of threads that parallel loops use; at least 1. Tells OpenMP in the calling thread, so whoever is about
/// to call oneDNN calls this first.
int thread_count();
/// Sets it, for oneDNN as well. Throws ValueError below 1.
void set_thread_count(int count);

/// Calls body(thread, threads) once on each thread of the pool and waits; exceptions are passed on (the first one).
/// A call from inside a parallel region runs on the calling thread alone, as thread 0 of 1.
void parallel_region(FunctionRef<void(int thread, int threads)> body);

/// Splits [0, count) into one contiguous range a thread and calls body(begin, end). Runs on the calling thread when
/// count * cost, an estimate in nanoseconds, is too small to be worth waking others.
void parallel_for(std::int64_t count, double cost, FunctionRef<void(std::int64_t, std::int64_t)> body);

}  // namespace russet::base
