// Each check has kernels that trip it, and kernels beside them that must not.
#include <algorithm>
#include <numeric>
#include <ostream>

#include "launcher.h"

namespace russet::simulator {
namespace {

using Strings = std::vector<std::string>;

/// A kernel body over OUT float y (and IN float x where it is named), and the report that it must give; none if empty.
struct Case {
  const char* name;
  const char* expected;
  const char* body;
  std::uint32_t groups = 1;
  std::uint32_t threads = 64;
};

constexpr Case cases[] = {
    // Races in group memory.
    {"MissingBarrier", "race: line 3", R"(
      part[thread_id] = x[thread_id];
      y[thread_id] = part[63 - thread_id];)"},
    {"BarrierBetween", "", R"(
      part[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[thread_id] = part[63 - thread_id];)"},
    {"BarrierOfTheOtherSpace", "race: line 4", R"(
      part[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_device);
      y[thread_id] = part[63 - thread_id];)"},
    {"ReadThenWrittenByAnother", "race: line 4", R"(
      part[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const float other = part[63 - thread_id];
      part[thread_id] = other;
      y[thread_id] = other;)"},
    {"ReadThenWrittenBehindABarrier", "", R"(
      part[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const float other = part[63 - thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      part[thread_id] = other;
      y[thread_id] = part[thread_id];)"},
    {"AllReadOneWrites", "race", R"(
      part[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[thread_id] = part[0];
      if (thread_id == 7) part[0] = 1;)"},
    {"OneWritesTwice", "", R"(
      part[thread_id] = x[thread_id];
      part[thread_id] += 1;
      y[thread_id] = part[thread_id];)"},
    {"WrittenByAllAlike", "race", R"(
      part[0] = 5;
      y[thread_id] = 0;)"},
    {"SimdgroupBarrierWithinASimdgroup", "", R"(
      part[thread_id] = x[thread_id];
      simdgroup_barrier(mem_flags::mem_threadgroup);
      y[thread_id] = part[thread_id ^ 1];
      simdgroup_barrier(mem_flags::mem_threadgroup);
      part[thread_id ^ 3] = 0;)"},
    {"SimdgroupBarrierAcrossSimdgroups", "race: line 4", R"(
      part[thread_id] = x[thread_id];
      simdgroup_barrier(mem_flags::mem_threadgroup);
      y[thread_id] = part[63 - thread_id];)"},
    {"ManyLanesReadThenOneWritesBehindASimdgroupBarrier", "", R"(
      part[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[thread_id] = part[simdgroup_id * 32];
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (lane_id == 9) part[simdgroup_id * 32] = 1;)"},
    {"AnotherSimdgroupReadsWhatWasWrittenBeforeASimdgroupBarrier", "race", R"(
      if (thread_id == 0) part[0] = 1;
      simdgroup_barrier(mem_flags::mem_threadgroup);
      if (thread_id < 32) y[thread_id] = part[0];
      if (thread_id == 40) y[thread_id] = part[0];)"},
    {"ShuffleOrdersNothing", "race", R"(
      part[thread_id] = x[thread_id];
      y[thread_id] = simd_sum(1.0f) + part[thread_id ^ 1];)"},
    {"HalvesOfAWordByTwoThreads", "", R"(
      halves[thread_id] = half(x[thread_id]);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[thread_id] = halves[63 - thread_id];)"},
    {"HalvesRaced", "race: line 3", R"(
      halves[thread_id] = half(x[thread_id]);
      y[thread_id] = halves[thread_id ^ 1];)"},
    {"BytesOfAWordByFourThreads", "", R"(
      bytes[thread_id] = uchar(thread_id);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[thread_id] = bytes[63 - thread_id];)"},
    {"BytesRaced", "race: line 3", R"(
      bytes[thread_id] = uchar(thread_id);
      y[thread_id] = bytes[thread_id ^ 1];)"},
    {"BytesInALoopOfBarriers", "", R"(
      for (uint i = 0; i < 50; ++i) {
        bytes[(thread_id + i) % 64] = uchar(thread_id);
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      y[thread_id] = bytes[thread_id];)"},
    // Races in device memory.
    {"DeviceMissingBarrier", "race: line 2", R"(
      y[thread_id] = x[thread_id];
      y[thread_id + 64] = y[63 - thread_id];)"},
    {"DeviceBarrierBetween", "", R"(
      y[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_device);
      y[thread_id + 64] = y[63 - thread_id];)"},
    {"DeviceBarrierOfTheOtherSpace", "race: line 4", R"(
      y[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[thread_id + 64] = y[63 - thread_id];)"},
    {"GroupsWriteTheSame", "race: line 2", R"(
      y[thread_id] = x[thread_id];)",
     2},
    {"GroupsReadWhatOneWrites", "race", R"(
      if (group_id.x == 0) y[200] = 1;
      y[group_id.x * 64 + thread_id] = group_id.x == 1 ? y[200] : 0;)",
     3},
    {"GroupsReadTheSame", "", R"(
      y[group_id.x * 64 + thread_id] = x[0];)",
     4},
    {"GroupsApart", "", R"(
      y[group_id.x * 64 + thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_device);
      y[group_id.x * 64 + 63 - thread_id] += 1;)",
     4},
    {"ManyGroups", "", R"(
      if (thread_id == 0) y[group_id.x % 256] = 1;)",
     256},
    {"ManyGroupsAndOneMore", "race", R"(
      if (thread_id == 0) y[group_id.x % 256] = 1;)",
     257},
    // Bounds.
    {"OneBeyond",
     "bounds: line 2: thread 63 of threadgroup (0, 0, 0) reads 4 bytes at byte 1024 of 'x' (in, 1024 bytes", R"(
      y[thread_id] = x[thread_id + 193];)"},
    {"OneBelow", "bounds: line 2: thread 0 of threadgroup (0, 0, 0) writes 4 bytes at byte -4 of 'y'", R"(
      y[int(thread_id) - 1] = 1;)"},
    {"OneBelowWithoutASign",
     "bounds: line 2: thread 0 of threadgroup (0, 0, 0) writes 4 bytes at byte 17179869180 of 'y'",
     R"(
      y[thread_id - 1] = 1;)"},
    {"FarBelow", "bounds", R"(
      y[int(thread_id) - 1000000] = 1;)"},
    {"FarBeyond", "bounds", R"(
      y[thread_id * 16777216u] = 1;)"},
    {"GroupMemoryBeyond", "bounds: line 2: index 64 is outside of an array 'float[64]', by thread 63", R"(
      part[thread_id + 1] = 1;
      y[thread_id] = 1;)"},
    {"GroupMemoryBeyondByAPointer",
     "bounds: line 3: thread 63 of threadgroup (0, 0, 0) writes 4 bytes at byte 256 of 'part'", R"(
      threadgroup float* const own = part + thread_id;
      own[1] = 1;
      y[thread_id] = 1;)"},
    {"ArrayOfAThreadBeyond",
     "bounds: line 3: index 4 is outside of an array 'float[4]', by thread 0 of threadgroup (0, 0, 0)",
     R"(
      float own[4] = {1, 2, 3, 4};
      for (uint i = 0; i <= 4 + thread_id / 32; ++i) own[i] += x[thread_id];
      y[thread_id] = own[thread_id % 4];)"},
    {"ArrayOfAThread", "", R"(
      float own[4] = {1, 2, 3, 4};
      for (uint i = 0; i < 4; ++i) own[i] += x[thread_id];
      y[thread_id] = own[thread_id % 4];)"},
    {"MatrixOfAThreadBeyond", "bounds: line", R"(
      part[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      simdgroup_float8x8 own[2];
      for (uint i = 0; i <= 2; ++i) simdgroup_load(own[i], (threadgroup const float*)part, 8);
      simdgroup_multiply_accumulate(own[0], own[0], own[1], own[0]);
      y[thread_id] = own[0].thread_elements()[0];)"},
    {"MatricesOfAThread", "", R"(
      part[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      simdgroup_float8x8 own[2];
      for (uint i = 0; i < 2; ++i) simdgroup_load(own[i], (threadgroup const float*)part, 8);
      simdgroup_multiply_accumulate(own[0], own[0], own[1], own[0]);
      y[thread_id] = own[0].thread_elements()[0];)"},
    {"WriteThroughIn", "bounds: line 2", R"(
      const_cast<float*>(x)[thread_id] = 1;)"},
    {"Misaligned", "bounds: line 2", R"(
      y[thread_id] = ((device const float4*)(x + 1))[0].x;)"},
    {"VectorOfFour", "", R"(
      ((device float4*)y)[thread_id] = ((device const float4*)x)[thread_id];)"},
    {"VectorOfFourBeyond", "bounds", R"(
      ((device float4*)y)[thread_id] = ((device const float4*)(x + 4))[thread_id];)"},
    // Initialisation.
    {"GroupMemoryUnwritten", "uninitialised: line 4", R"(
      if (thread_id != 5) part[thread_id] = 1;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[thread_id] = part[thread_id];)"},
    {"GroupMemoryUnwrittenByTheSecondGroup", "uninitialised", R"(
      if (group_id.x == 0) part[thread_id] = 1;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[group_id.x * 64 + thread_id] = part[thread_id];)",
     2},
    {"AddedToNothing", "uninitialised: line 2", R"(
      part[thread_id] += 1;
      y[thread_id] = 1;)"},
    {"ElementOfAThreadUnwritten",
     "uninitialised: line 4: thread 3 of threadgroup (0, 0, 0) reads 4 bytes at a variable of the thread's own, which",
     R"(
      float own[4];
      for (uint i = 0; i < 4; ++i) if (thread_id != 3 || i != 2) own[i] = x[i];
      y[thread_id] = own[(thread_id + 3) % 4];)"},
    {"ElementsOfAThreadWritten", "", R"(
      float own[4];
      for (uint i = 0; i < 4; ++i) own[i] = x[i];
      y[thread_id] = own[(thread_id + 3) % 4];)"},
    {"ElementOfKnownPlaceUnwritten", "uninitialised: line 4", R"(
      float own[2];
      own[0] = x[thread_id];
      y[thread_id] = own[1];)"},
    {"MemberUnwritten", "uninitialised: line 4", R"(
      Pair pair;
      pair.first = x[thread_id];
      y[thread_id] = pair.second;)"},
    {"MembersWritten", "", R"(
      Pair pair;
      pair.first = x[thread_id];
      pair.second = 1;
      y[thread_id] = pair.first + pair.second;)"},
    {"MemberUnwrittenByAFunction", "uninitialised: line 4", R"(
      Pair pair;
      pair.start(x[thread_id]);
      y[thread_id] = pair.second;)"},
    {"MemberWrittenInSomeLanes", "uninitialised: line 4: thread 5 of", R"(
      Pair one, other;
      if (thread_id != 5) other.second = 1;
      y[thread_id] = other.second;
      one.start(1);)"},
    {"MembersWithInitialValues", "", R"(
      Started started[2];
      y[thread_id] = started[thread_id % 2].first + started[0].second;)"},
    {"CopyOfAPartlyWrittenStruct", "", R"(
      Three three;
      three.a = x[thread_id];
      Three copy;
      copy = three;
      y[thread_id] = copy.a;)"},
    {"MemberUnwrittenInACopy", "uninitialised: line 6", R"(
      Three three;
      three.a = x[thread_id];
      Three copy;
      copy = three;
      y[thread_id] = copy.c;)"},
    {"ElementOfTheRoundBefore", "uninitialised: line 5", R"(
      for (uint i = 0; i < 3; ++i) {
        float own[3];
        if (i == 0) own[1] = 1;
        y[thread_id] = own[thread_id % 1 + 1];
      })"},
    {"MatrixUnwritten", "uninitialised: line", R"(
      part[thread_id] = x[thread_id];
      simdgroup_float8x8 own[2];
      simdgroup_multiply_accumulate(own[0], own[1], own[1], own[0]);
      y[thread_id] = own[0].thread_elements()[0];)"},
    // Arithmetic.
    {"SumBeyondInt", "arithmetic: line 2: a signed number that its type does not hold", R"(
      y[thread_id] = float(int(x[thread_id]) + 2147483600);)"},
    {"DifferenceBeyondInt", "arithmetic: line 2: a signed", R"(
      y[thread_id] = float(-2147483600 - int(x[thread_id]));)"},
    {"ProductBeyondInt", "arithmetic: line 2: a signed", R"(
      y[thread_id] = float(int(x[thread_id]) * 100000000);)"},
    {"ProductBeyondLong", "arithmetic: line 2: a signed", R"(
      y[thread_id] = float(long(x[thread_id]) * 1000000000000000000l);)"},
    {"LeastNegated", "arithmetic: line 2: a signed", R"(
      y[thread_id] = float(-(int(x[thread_id]) - 2147483647 - 1));)"},
    {"LeastDividedByMinusOne", "arithmetic: line 2: a signed", R"(
      y[thread_id] = float((int(x[0]) - 2147483647 - 1) / (int(x[thread_id]) - 1));)"},
    {"ProductInLong", "", R"(
      y[thread_id] = float(long(x[thread_id]) * 100000000l);)"},
    {"UnsignedSumsWrap", "", R"(
      y[thread_id] = float(uint(x[thread_id]) + 4294967290u);)"},
    {"SumInInt", "", R"(
      y[thread_id] = float(int(x[thread_id]) + 2147483584);)"},
    {"DivisionByZero", "arithmetic: line 2: an integer division by zero", R"(
      y[thread_id] = float(100 / (int(thread_id) - 5));)"},
    {"RemainderByZero", "arithmetic: line 2", R"(
      y[thread_id] = float(100u % (thread_id >> 3));)"},
    {"DivisionByOthers", "", R"(
      y[thread_id] = float(100 / (int(thread_id) + 1) + 100 % (int(thread_id) - 64));)"},
    {"LongDivisionByZero", "arithmetic: line 2: an integer division by zero", R"(
      y[thread_id] = float(100l / long(thread_id / 2));)"},
    {"ShiftByTheWidth", "arithmetic: line 2: a shift", R"(
      y[thread_id] = float(1u << thread_id);)"},
    {"RightShiftByTheWidth", "arithmetic: line 2: a shift", R"(
      y[thread_id] = float(-5 >> int(thread_id));)"},
    {"ShiftByLess", "arithmetic: line 2: a shift", R"(
      y[thread_id] = float(1u << (int(thread_id) - 40));)"},
    {"LongShiftBelowTheWidth", "", R"(
      y[thread_id] = float((1ul << ulong(thread_id)) >> ulong(thread_id));)"},
    {"LongShiftByTheWidth", "arithmetic: line 2: a shift", R"(
      y[thread_id] = float(1ul << ulong(thread_id + 1));)"},
    {"ShiftBelowTheWidth", "", R"(
      y[thread_id] = float(1u << (thread_id & 31u));)"},
    {"FloatBeyondInt", "arithmetic: line 2: a conversion", R"(
      y[thread_id] = float(int(x[thread_id] * 1e9f));)"},
    {"NanToInt", "arithmetic: line 2: a conversion", R"(
      y[thread_id] = float(int(x[thread_id] * NAN));)"},
    {"NegativeToUint", "arithmetic: line 2: a conversion", R"(
      y[thread_id] = float(uint(-x[thread_id]));)"},
    {"FloatBeyondUchar", "arithmetic: line 2: a conversion", R"(
      y[thread_id] = float(uchar(x[thread_id] * 8.0f));)"},
    {"FloatInUchar", "", R"(
      y[thread_id] = float(uchar(x[thread_id] * 4.0f));)"},
    {"FloatInInt", "", R"(
      y[thread_id] = float(int(x[thread_id]) / 3);)"},
    // Divergence.
    {"HalfAtABarrier", "divergence: 32 of 64 threads came to the barrier at line 2", R"(
      if (thread_id < 32) threadgroup_barrier(mem_flags::mem_none);
      y[thread_id] = 1;)"},
    {"TwoBarriers", "divergence: threads of one threadgroup wait at different barriers", R"(
      if (thread_id < 32) threadgroup_barrier(mem_flags::mem_none); else threadgroup_barrier(mem_flags::mem_device);
      y[thread_id] = 1;)"},
    {"SimdgroupsApart", "", R"(
      y[thread_id] = thread_id < 32 ? simd_sum(1.0f) : simd_max(2.0f);)"},
    {"LanesApart", "divergence", R"(
      y[thread_id] = lane_id < 16 ? simd_sum(1.0f) : simd_max(2.0f);)"},
    {"LanesThatLeft", "divergence", R"(
      if (lane_id < 5) return;
      y[thread_id] = simd_sum(1.0f);)"},
    {"ASimdgroupThatLeft", "", R"(
      if (simdgroup_id == 1) return;
      y[thread_id] = simd_sum(1.0f);)"},
    {"ThreadsThatLeftBeforeABarrier", "divergence", R"(
      if (thread_id == 63) return;
      threadgroup_barrier(mem_flags::mem_none);
      y[thread_id] = 1;)"},
    {"LanesApartAtASimdgroupBarrier", "divergence", R"(
      if (lane_id < 16) simdgroup_barrier(mem_flags::mem_none);
      y[thread_id] = 1;)"},
    {"LanesAtABarrierAndInASum", "divergence", R"(
      if (lane_id < 16) threadgroup_barrier(mem_flags::mem_none); else y[thread_id] = simd_sum(1.0f);)"},
    // Matrices, which all lanes load and store together.
    {"MatrixLoadedByHalf", "divergence: 16 of 32 lanes of simdgroup 0 load or store the matrix at line 5", R"(
      part[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      simdgroup_float8x8 own = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      if (lane_id < 16) simdgroup_load(own, (threadgroup const float*)part, 8);
      y[thread_id] = own.thread_elements()[0];)"},
    {"MatrixStoredByHalf", "divergence: 16 of 32 lanes of simdgroup 0 load or store the matrix at line 3", R"(
      simdgroup_float8x8 own = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
      if (lane_id >= 16) simdgroup_store(own, y + simdgroup_id * 64, 8);
      simdgroup_barrier(mem_flags::mem_none);)"},
    {"MatrixLoadedFromUnlikePlaces",
     "divergence: lanes of one simdgroup load or store a matrix at different places, at line 5 and at line 5", R"(
      part[thread_id] = x[thread_id];
      threadgroup_barrier(mem_flags::mem_threadgroup);
      simdgroup_float8x8 own;
      simdgroup_load(own, (threadgroup const float*)part, lane_id == 3 ? 7 : 8);
      y[thread_id] = own.thread_elements()[0];)"},
    {"MatrixStoredAtUnlikePlaces",
     "divergence: lanes of one simdgroup load or store a matrix at different places, at line 3 and at line 3", R"(
      simdgroup_float8x8 own = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
      simdgroup_store(own, y + thread_id / 16 * 8, 8);)"},
    {"MatrixLoadedInTwoBranches",
     "divergence: lanes of one simdgroup load or store a matrix at different places, at line 4 and at line 6", R"(
      simdgroup_float8x8 own;
      if (lane_id < 16) {
        simdgroup_load(own, x, 8);
      } else {
        simdgroup_load(own, x, 8);
      }
      y[thread_id] = own.thread_elements()[0];)"},
    {"MatricesLoadedAndStoredTogether", "", R"(
      simdgroup_float8x8 own[2];
      for (uint i = 0; i < 2; ++i) simdgroup_load(own[i], x + simdgroup_id * 64 + i * 8, 8 + i);
      simdgroup_multiply_accumulate(own[0], own[0], own[1], own[0]);
      simdgroup_store(own[0], y + simdgroup_id * 64, 8);)"},
    {"MatrixOfOneSimdgroup", "", R"(
      simdgroup_float8x8 own = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
      if (simdgroup_id == 1) simdgroup_store(own, y, 8);
      threadgroup_barrier(mem_flags::mem_device);
      y[thread_id + 64] = 1;)"},
    // Shuffles.
    {"ShuffleBeyond", "divergence: line 2: lane 31 of simdgroup 0 is given 32, which names no lane", R"(
      y[thread_id] = simd_shuffle(1.0f, ushort(lane_id + 1));)"},
    {"ShuffleXorBeyond", "divergence: line 2: lane 0 of simdgroup 0 is given 32", R"(
      y[thread_id] = simd_shuffle_xor(1.0f, 32);)"},
    {"BroadcastBeyond", "divergence: line 2: lane 0 of simdgroup 0 is given 40", R"(
      y[thread_id] = simd_broadcast(1.0f, 40);)"},
    {"ShuffleDownBeyond", "divergence: line 2: lane 0 of simdgroup 0 is given 32", R"(
      y[thread_id] = simd_shuffle_down(1.0f, 32);)"},
    {"BroadcastOfUnlikeLanes", "divergence: line 2: lane 1 of simdgroup 0 is given 1", R"(
      y[thread_id] = simd_broadcast(1.0f, ushort(lane_id));)"},
    {"ShuffleUpByUnlikeDistances", "divergence: line 2: lane 7 of simdgroup 0 is given 1", R"(
      y[thread_id] = simd_shuffle_up(1.0f, lane_id == 7 ? 1 : 2);)"},
    {"ShufflesWithin", "", R"(
      float sum = simd_shuffle(x[thread_id], ushort(31 - lane_id)) + simd_shuffle_xor(1.0f, 31);
      sum += simd_broadcast(sum, 31) + simd_broadcast_first(sum);
      y[thread_id] = sum + simd_shuffle_up(sum, 16) + simd_shuffle_down(sum, 31);)"},
    // Loops without an end.
    {"EndlessLoop", "endless: line 3: thread 0 of threadgroup (0, 0, 0) has not come to an end", R"(
      uint k = uint(x[thread_id]);
      while (k != 7) k += 2 * uint(x[1]);
      y[thread_id] = float(k);)",
     3},
    {"EndlessLoopOfNothing", "endless: line", R"(
      for (uint i = 5; i >= 0; --i) y[i % 256] = 1;)"},
    {"EndlessLoopOfBarriers", "endless: line", R"(
      while (x[0] == 0.0f) threadgroup_barrier(mem_flags::mem_none);
      y[thread_id] = 1;)"},
    {"LongLoop", "", R"(
      uint k = 0;
      for (uint i = 0; i < 100000; ++i) k = k * 3 + i;
      y[thread_id] = float(k);)"},
    // Atomics.
    {"AtomicAndPlain", "atomic: line 3", R"(
      device atomic_uint* count = (device atomic_uint*)y;
      if (thread_id == 9) y[0] = 1; else atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);)"},
    {"AtomicAndPlainInGroupMemory", "atomic: line 5", R"(
      if (thread_id == 0) atomic_store_explicit(&counter[0], 0u, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (thread_id != 9) atomic_fetch_add_explicit(&counter[0], 1u, memory_order_relaxed);
      if (thread_id == 9) y[thread_id] = float(*(threadgroup uint*)&counter[0]);)"},
    {"AtomicThenPlainBehindABarrier", "", R"(
      device atomic_uint* count = (device atomic_uint*)y;
      atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_device);
      if (thread_id == 9) y[1] = y[0];)"},
    {"AtomicInGroupMemory", "", R"(
      if (thread_id == 0) atomic_store_explicit(&counter[0], 0u, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      atomic_fetch_add_explicit(&counter[0], 1u, memory_order_relaxed);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      y[thread_id] = float(atomic_load_explicit(&counter[0], memory_order_relaxed));)"},
    // Limits.
    {"AllGroupMemory", "", R"(
      GROUP_MEMORY(float, large, 8192 - 256);
      large[thread_id] = 1;
      y[thread_id] = large[thread_id];)"},
    {"TooMuchGroupMemory", "launch: 35952 bytes of group memory", R"(
      GROUP_MEMORY(float, large, 9000 - 128);
      large[thread_id] = 1;
      y[thread_id] = large[thread_id];)"},
};

void PrintTo(const Case& test, std::ostream* stream) { *stream << test.name; }

class Checks : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Checks, testing::ValuesIn(cases), [](const auto& info) { return info.param.name; });

TEST_P(Checks, GivesTheReportItMust) {
  const Case& test = GetParam();
  const std::string arrays =
      " GROUP_MEMORY(float, part, 64); GROUP_MEMORY(half, halves, 64); GROUP_MEMORY(uchar, bytes, 64);"
      " GROUP_MEMORY(atomic_uint, counter, 1);";
  const std::string structs =
      "struct Pair { float first, second; void start(float x) { first = x; } }; struct Three { float a, b, c, d, e; "
      "}; struct Started { float first = 1, second = 2; }; ";
  const std::string text =
      structs + "KERNEL(tested, 64, IN(float, x, 0), OUT(float, y, 1)) {" + arrays + test.body + "\n}\n";
  const Compiled tested(text, "tested", true);
  std::vector<float> x(256), y(256);
  std::iota(x.begin(), x.end(), 0.0f);
  const Strings lines = reports_of(tested.dispatch(test.groups, test.threads, {in(x), out(y)}));
  if (*test.expected == '\0') {
    EXPECT_EQ(lines, Strings{});
    return;
  }
  // Among others: a race often is a read of what has not been written, too.
  EXPECT_TRUE(std::ranges::any_of(lines, [&](const std::string& line) { return line.starts_with(test.expected); }))
      << test.expected << "\n"
      << testing::PrintToString(lines);
}

constexpr const char* copy_text = R"(
KERNEL(copy, 32, IN(float, x, 0), OUT(float, y, 1)) { y[thread_id] = x[thread_id]; }
KERNEL(add, 32, IN(float, x, 0), OUT(float, y, 1)) { y[thread_id] += x[thread_id]; }
)";

TEST(Memory, NeverWrittenIsReportedUntilItIs) {
  const Compiled copy(copy_text, "copy", true);
  std::vector<float> x(32), y(32), z(32);
  mark_uninitialised(reinterpret_cast<std::byte*>(y.data()), 128);
  mark_uninitialised(reinterpret_cast<std::byte*>(z.data()), 128);
  const Strings lines = reports_of(copy.dispatch(1, 32, {in(y, "y"), out(z, "z")}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("reads 4 bytes at byte 0 of 'x' (y, 128 bytes, read alone), which nothing has written"),
            std::string::npos)
      << lines[0];
  EXPECT_EQ(reports_of(copy.dispatch(1, 32, {in(x), out(y)})), Strings{});
  EXPECT_EQ(reports_of(copy.dispatch(1, 32, {in(y), out(z)})), Strings{});
  mark_uninitialised(reinterpret_cast<std::byte*>(y.data() + 4), 8);
  mark_initialised(reinterpret_cast<std::byte*>(y.data() + 5), 4);
  const Strings again = reports_of(copy.dispatch(1, 32, {in(y), out(z)}));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_NE(again[0].find("byte 16 of 'x'"), std::string::npos) << again[0];
  mark_initialised(reinterpret_cast<std::byte*>(y.data()), 128);
  EXPECT_EQ(reports_of(copy.dispatch(1, 32, {in(y), out(z)})), Strings{});
}

TEST(Memory, NeighboursInOneArenaAreApart) {
  const Compiled copy("KERNEL(copy, 32, IN(float, x, 0), OUT(float, y, 1)) { y[thread_id] = x[thread_id + 1]; }",
                      "copy", true);
  std::vector<float> arena(64);
  const auto range = [&](std::size_t first, bool writable) {
    return BoundMemory{reinterpret_cast<std::byte*>(arena.data() + first), 128, writable,
                       writable ? "second" : "first"};
  };
  const Strings lines = reports_of(copy.dispatch(1, 32, {range(0, false), range(32, true)}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("byte 128 of 'x' (first, 128 bytes"), std::string::npos) << lines[0];
}

TEST(Memory, EmptyBindingsAreApartFromOthers) {
  const Compiled two("KERNEL(two, 32, IN(float, x, 0), IN(float, w, 1), OUT(float, y, 2)) { y[thread_id] = 1; }", "two",
                     true);
  std::vector<float> y(32);
  const auto empty = [&](int offset) {
    return BoundMemory{reinterpret_cast<std::byte*>(y.data()) + offset, 0, false, "empty"};
  };
  for (const int offset : {-512, 0, 64, 512}) {
    EXPECT_EQ(reports_of(two.dispatch(1, 32, {empty(offset), empty(64), out(y)})), Strings{}) << offset;
  }
}

TEST(Memory, InPlaceIsAllowed) {
  const Compiled add(copy_text, "add", true);
  std::vector<float> x(32, 2);
  EXPECT_EQ(reports_of(add.dispatch(1, 32, {in(x), out(x)})), Strings{});
  EXPECT_EQ(x, std::vector<float>(32, 4));
}

TEST(Dispatches, ThatConflictAreReported) {
  const Compiled copy(copy_text, "copy", true), add(copy_text, "add", true);
  std::vector<float> x(32, 1), y(32), z(32);
  const auto overlaps = [&](const Dispatch& one, const Dispatch& other) {
    const Dispatch both[] = {one, other};
    const Strings lines = reports_of(both);
    for (const std::string& line : lines) EXPECT_EQ(line.find("overlap: no barrier separates it"), 0u) << line;
    return lines.size();
  };
  // Read after write, write after read, write after write; and none.
  EXPECT_EQ(overlaps(copy.dispatch(1, 32, {in(x), out(y)}), copy.dispatch(1, 32, {in(y), out(z)})), 1u);
  EXPECT_EQ(overlaps(copy.dispatch(1, 32, {in(z), out(y)}), copy.dispatch(1, 32, {in(x), out(z)})), 1u);
  EXPECT_EQ(overlaps(copy.dispatch(1, 32, {in(x), out(y)}), add.dispatch(1, 32, {in(x), out(y)})), 1u);
  EXPECT_EQ(overlaps(copy.dispatch(1, 32, {in(x), out(y)}), copy.dispatch(1, 32, {in(x), out(z)})), 0u);
  // Bound by both, but touched apart.
  std::vector<float> whole(64);
  const Compiled halves(
      "KERNEL(low, 32, OUT(float, y, 0)) { y[thread_id] = 1; } KERNEL(high, 32, OUT(float, y, 0)) { y[32 + thread_id] "
      "= 2; }",
      "low", true);
  const Compiled high(
      "KERNEL(low, 32, OUT(float, y, 0)) { y[thread_id] = 1; } KERNEL(high, 32, OUT(float, y, 0)) { y[32 + thread_id] "
      "= 2; }",
      "high", true);
  EXPECT_EQ(overlaps(halves.dispatch(1, 32, {out(whole)}), high.dispatch(1, 32, {out(whole)})), 0u);
  EXPECT_EQ(whole[31] + whole[32], 3);
}

TEST(Dispatches, WithMoreBarriersThanIdsGiveNoFalseReport) {
  // About 130,000 intervals; simdgroups pass different numbers of barriers, so that ids of one are far behind.
  const Compiled many(R"(
    KERNEL(many, 64, OUT(float, y, 0)) {
      GROUP_MEMORY(float, part, 64);
      float sum = 0;
      for (uint round = 0; round < 400; ++round) {
        part[thread_id] = 1;
        if (simdgroup_id == 0) {
          for (uint i = 0; i < 2; ++i) {
            simdgroup_barrier(mem_flags::mem_threadgroup);
            sum += part[thread_id ^ 1];
          }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        sum += part[63 - thread_id];
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      y[group_id.x * 64 + thread_id] = sum;
    })",
                      "many", true);
  std::vector<float> y(64 * 80);
  EXPECT_EQ(reports_of(many.dispatch(80, 64, {out(y)})), Strings{});
  EXPECT_EQ(y[0], 1200);
  EXPECT_EQ(y[5119], 400);
}

// A function that does not see how long the array is.
TEST(Checks, AnArrayThatAFunctionIsGivenEnds) {
  const Compiled tested(R"(
    __attribute__((noinline)) void fill(thread float* own, uint count) {
      for (uint i = 0; i < count; ++i) own[i] = float(i);
    }
    struct FillValues { uint count; };
    KERNEL(tested, 64, OUT(float, y, 0), VALUES(FillValues, values, 1)) {
      float own[5];
      float other[5];
      fill(own, thread_id == 40 ? values.count : 5);
      fill(other, 5);
      y[thread_id] = own[thread_id % 5] + other[thread_id % 5];
    })",
                        "tested", true);
  std::vector<float> y(64);
  const auto run = [&](std::uint32_t count) { return reports_of(tested.dispatch(1, 64, {out(y)}, values(count))); };
  EXPECT_EQ(run(5), Strings{});
  EXPECT_EQ(y[41], 2);
  EXPECT_EQ(run(6), Strings{"bounds: line 3: thread 40 of threadgroup (0, 0, 0) writes 4 bytes at memory between the "
                            "thread's variables"});
  EXPECT_EQ(run(5), Strings{});
}

TEST(Dispatches, WithMoreGroupsThanIdsAreStillChecked) {
  const std::string text = R"(
    KERNEL(rare, 32, OUT(float, y, 0)) {
      if (thread_id == 0) y[group_id.x] = 1;
      if (thread_id == 1 && group_id.x == 49999) y[3] = 2;
    })";
  const Compiled rare(text, "rare", true);
  std::vector<float> y(60000);
  EXPECT_EQ(reports_of(rare.dispatch(49999, 32, {out(y)})), Strings{});
  const Strings lines = reports_of(rare.dispatch(50000, 32, {out(y)}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].substr(0, 12), "race: line 4");
}

}  // namespace
}  // namespace russet::simulator
