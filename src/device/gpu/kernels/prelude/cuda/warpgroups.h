#pragma once
// Warpgroups, four warps that multiply what lies in shared memory by tensor cores (PTX ISA 9.7.15, wgmma), and copies
// to shared memory that run ahead (PTX ISA 9.7.9.25, cp.async): the work of split_product.metal. Of compute
// capability 9.0 alone, where NVRTC compiles for sm_90a.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define RUSSET_OWN_WARPGROUPS

namespace russet_cuda {

inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until at most so many of the latest groups of copies are under way.
template <int COUNT>
inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(COUNT) : "memory");
}

/// Barriers by number, 1 to 15, of so many threads: those that wait, and those that only say that they came.
inline void meet(uint barrier, uint threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
inline void come_to(uint barrier, uint threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// A matrix of lines of 32 floats, in pieces of 16 bytes whose number is exclusive-or'ed with the line's, as wgmma
/// reads it (PTX ISA 9.7.15.5.1: swizzling of 128 bytes). It begins at a multiple of 1,024 bytes.
inline uint swizzled(uint line, uint piece) { return line * 32 + (piece ^ line % 8) * 4; }
inline ulong matrix_descriptor(const float* matrix) {
  return ulong(shared_address(matrix) >> 4 & 0x3fff) | 1ul << 16 | 64ul << 32 | 1ul << 62;
}

// Eight of a thread's sums as operands; for warpgroup_product.h, too, which ends it.
#define RUSSET_EIGHT(i)                                                                                         \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]), \
      "+f"(sums[i + 6]), "+f"(sums[i + 7])
// Adds 64 x 8 by 8 x COLUMNS to sums, or replaces them. `left` are a lane's elements as of mma.m16n8k8.
// clang-format off
inline void multiply_warpgroup(float (&sums)[32], const uint* left, ulong right, int adds) {
  asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %37, 0; "
               "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
               "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
               "{%32, %33, %34, %35}, %36, adds, 1, 1; }"
               : RUSSET_EIGHT(0), RUSSET_EIGHT(8), RUSSET_EIGHT(16), RUSSET_EIGHT(24)
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(adds));
}
inline void multiply_warpgroup(float (&sums)[64], const uint* left, ulong right, int adds) {
  asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %69, 0; "
               "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 "
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
               "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
               "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
               "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
               "{%64, %65, %66, %67}, %68, adds, 1, 1; }"
               : RUSSET_EIGHT(0), RUSSET_EIGHT(8), RUSSET_EIGHT(16), RUSSET_EIGHT(24), RUSSET_EIGHT(32),
                 RUSSET_EIGHT(40), RUSSET_EIGHT(48), RUSSET_EIGHT(56)
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(adds));
}
// clang-format on

/// `high` is rounded to eleven bits. Of `low`, which is exact, tensor cores drop what they cannot take.
inline void split(uint x, uint& high, uint& low, float& magnitudes) {
  high = (x + 0x1000u) & 0xffffe000u;
  low = __float_as_uint(__uint_as_float(x) - __uint_as_float(high));
  magnitudes += fabsf(__uint_as_float(x));
}

/// Slices of tiles, one tile after the other: several in shared memory as they lie in memory, and two of the right
/// factor split and swizzled. One warpgroup brings them, one splits, two multiply 64 rows each. Barriers: `arrived` of
/// a slice that is there as it lies, `full` of a split one's two numbers and of each multiplying warpgroup,
/// `empty_split` of the latter and `empty` of the former when it was multiplied. Those of four numbers are met up to
/// three slices apart.
template <class Left, class Right>
struct SplitSlices {
  enum : uint {
    bringing = Left::bringing,  // threads
    splitting = 128,
    multiplying = 256,
    depth = Left::depth,
    columns = Right::lines,
    stages = Right::lines == 64 ? 6 : 4,  // as many as there is room for
    ahead = stages - 2,                   // slices whose copies are under way
    matrix = columns * depth,
    pair = 2 * matrix,                                           // high and low parts
    flags = 2 * pair + stages * (Left::floats + Right::floats),  // one a splitting warp, of two tiles
    strips = flags + 16,                                         // of the warps that multiply
    floats = strips + multiplying / 32 * Left::strip,
    full = 1,
    arrived = 5,
    empty = 9,
    empty_split = 13,
  };
  float* memory;

  // Elements where a slice of a factor begins.
  static uint left_stage(uint slice) { return 2 * pair + slice % stages * Left::floats; }
  static uint right_stage(uint slice) { return 2 * pair + stages * Left::floats + slice % stages * Right::floats; }
  float* split_right(uint slice) const { return memory + slice % 2 * pair; }

  void store_split(float* matrix_pair, uint line, uint piece, uint4 x, float& magnitudes) const {
    uint4 high;
    uint4 low;
    split(x.x, high.x, low.x, magnitudes);
    split(x.y, high.y, low.y, magnitudes);
    split(x.z, high.z, low.z, magnitudes);
    split(x.w, high.w, low.w, magnitudes);
    float* const to = matrix_pair + swizzled(line, piece);
    *reinterpret_cast<uint4*>(to) = high;
    *reinterpret_cast<uint4*>(to + matrix) = low;
  }

  /// Of the lines that a thread always has, one after the other, the sums of magnitudes.
  enum : uint { own_lines = columns * 8 / splitting };
  void split_slice(uint slice, float* magnitudes, uint thread_id) const {
    const float* const stage = memory + right_stage(slice);
    float* const to = split_right(slice);
    if constexpr (Right::along) {
      UNROLL for (uint i = 0; i < own_lines; ++i) {
        const uint line = i * (splitting / 8) + thread_id / 8;
        const uint piece = thread_id % 8;
        store_split(to, line, piece, *reinterpret_cast<const uint4*>(stage + Right::place(line, piece * 4)),
                    magnitudes[i]);
      }
    } else {
      // Blocks of four by four.
      UNROLL for (uint first = 0; first < own_lines; first += 4) {
        const uint line = first * (splitting / 8) + (thread_id % 4 + thread_id / 32 * 4) * 4;
        const uint piece = thread_id / 4 % 8;
        uint4 x[4];
        UNROLL for (uint i = 0; i < 4; ++i) {
          x[i] = *reinterpret_cast<const uint4*>(stage + Right::place(line, piece * 4 + i));
        }
        float* const own = magnitudes + first;
        store_split(to, line, piece, uint4{x[0].x, x[1].x, x[2].x, x[3].x}, own[0]);
        store_split(to, line + 1, piece, uint4{x[0].y, x[1].y, x[2].y, x[3].y}, own[1]);
        store_split(to, line + 2, piece, uint4{x[0].z, x[1].z, x[2].z, x[3].z}, own[2]);
        store_split(to, line + 3, piece, uint4{x[0].w, x[1].w, x[2].w, x[3].w}, own[3]);
      }
    }
  }

  template <class Tile>
  static uint slices_of(const Tile& tile) {
    return max((tile.end - tile.begin + depth - 1) / depth, 1u);
  }

  /// Calls `run` for each slice of the work, with its number, and whether it is its tile's last one.
  template <class Work, class Run>
  static uint for_each_slice(const Work& work, const Run& run) {
    typename Work::Tile tile;
    uint slice = 0;
    for (uint number = work.first; number < work.count(); number += work.step) {
      work.find(tile, number);
      for (uint rest = slices_of(tile); rest > 0; --rest) run(slice++, rest == 1);
    }
    return slice;
  }

  template <class Work>
  void bring(const Work& work, uint thread_id) const {
    typename Work::FromLeft left_source;
    typename Work::FromRight right_source;
    typename Work::Left left_side;
    typename Work::Right right_side;
    set_sides(left_side, right_side, left_source, right_source, *work.values);
    Left left;
    Right right;
    typename Work::Tile tile;
    uint number = work.first;
    uint step = 0;  // of the tile's depth
    bool is_new = true;
    const auto request = [&](uint slice) {
      if (number < work.count()) {
        if (is_new) {
          work.find(tile, number);
          work.start(left_source, right_source, tile.batch);
          left.start(left_side, tile.first_row, thread_id);
          right.start(right_side, tile.first_column, thread_id);
          step = tile.begin;
        }
        left.bring(left_side, memory, left_stage(slice), step, tile.end, thread_id);
        right.bring(right_side, memory, right_stage(slice), step, tile.end, thread_id);
        step += depth;
        is_new = step >= tile.end;
        if (is_new) number += work.step;
      }
      end_copies();
    };
    for (uint slice = 0; slice < ahead; ++slice) request(slice);
    const uint count = for_each_slice(work, [&](uint slice, bool) {
      wait_for_copies<ahead - 1>();
      come_to(arrived + slice % 4, bringing + splitting);
      if (slice >= 2) meet(empty + (slice - 2) % 4, bringing + multiplying);
      request(slice + ahead);
    });
    for (uint last = count < 2 ? 0 : count - 2; last < count; ++last) meet(empty + last % 4, bringing + multiplying);
  }

  /// With a tile's last slice comes, by warps, whether its lines of the right factor could be split.
  template <class Work>
  void split_slices(const Work& work, uint thread_id) const {
    float magnitudes[own_lines] = {};
    const uint count = for_each_slice(work, [&](uint slice, bool is_last) {
      meet(arrived + slice % 4, bringing + splitting);
      if (slice >= 2) meet(empty_split + slice % 2, splitting + multiplying);
      split_slice(slice, magnitudes, thread_id);
      if (is_last) {
        bool splits = true;
        UNROLL for (uint i = 0; i < own_lines; ++i) {
          splits = splits && Left::can_split(magnitudes[i]);
          magnitudes[i] = 0.0f;
        }
        memory[flags + slice % 2 * 8 + thread_id / 32] = __all_sync(all_lanes, splits) ? 0.0f : 1.0f;
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      come_to(full + slice % 2 * 2, splitting + multiplying / 2);
      come_to(full + slice % 2 * 2 + 1, splitting + multiplying / 2);
    });
    for (uint last = count < 2 ? 0 : count - 2; last < count; ++last) {
      meet(empty_split + last % 2, splitting + multiplying);
    }
  }

  /// A lane's elements of 16 rows, eight of the depth, as of mma.m16n8k8.
  void load_left(uint (&x)[4], uint stage, uint first_row, uint first_step, uint lane_id) const {
    if constexpr (Left::along) {
      const uint place = Left::place(first_row + lane_id % 16, first_step + lane_id / 16 * 4);
      load_matrices(x, element_address(memory, stage + place));
    } else {
      UNROLL for (uint i = 0; i < 4; ++i) {
        const uint place = Left::place(first_row + lane_id / 4 + i % 2 * 8, first_step + lane_id % 4 + i / 2 * 4);
        x[i] = __float_as_uint(memory[stage + place]);
      }
    }
  }

  /// Adds the products of a slice to sums.
  void multiply_slice(float (&sums)[columns / 2], float (&magnitudes)[2], uint slice, uint thread_id) const {
    const uint first_row = thread_id / 32 * 16;
    uint high[depth / 8][4];
    uint low[depth / 8][4];
    UNROLL for (uint k = 0; k < depth / 8; ++k) {
      uint x[4];
      load_left(x, left_stage(slice), first_row, k * 8, thread_id % 32);
      UNROLL for (uint i = 0; i < 4; ++i) split(x[i], high[k][i], low[k][i], magnitudes[i % 2]);
    }
    const ulong right_high = matrix_descriptor(split_right(slice));
    const ulong right_low = right_high + matrix * sizeof(float) / 16;
    float parts[columns / 2];
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    // Each sum is truncated: the small products go first, while what is lost is small.
    UNROLL for (uint k = 0; k < depth / 8; ++k) {
      multiply_warpgroup(parts, low[k], right_high + k * 2, k != 0);
      multiply_warpgroup(parts, high[k], right_low + k * 2, 1);
    }
    UNROLL for (uint k = 0; k < depth / 8; ++k) multiply_warpgroup(parts, high[k], right_high + k * 2, 1);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    come_to(empty_split + slice % 2, splitting + multiplying);
    come_to(empty + slice % 4, bringing + multiplying);
    // Nobody reads the parts before the wait.
    UNROLL for (uint i = 0; i < columns / 2; ++i) asm volatile("" : "+f"(parts[i]));
    UNROLL for (uint i = 0; i < columns / 2; ++i) sums[i] += parts[i];
  }

  template <class Work>
  void multiply(const Work& work, uint thread_id) const {
    const uint warp = thread_id / 32;
    uint slice = 0;
    for (uint number = work.first; number < work.count(); number += work.step) {
      typename Work::Tile tile;
      work.find(tile, number);
      float sums[columns / 2] = {};
      float magnitudes[2] = {};
      bool is_split = true;
      for (uint rest = slices_of(tile); rest > 0; --rest, ++slice) {
        meet(full + slice % 2 * 2 + thread_id / 128, splitting + multiplying / 2);
        if (rest == 1) {
          UNROLL for (uint i = 0; i < splitting / 32; ++i) is_split =
              is_split && memory[flags + slice % 2 * 8 + i] == 0.0f;
        }
        multiply_slice(sums, magnitudes, slice, thread_id);
      }
      is_split = is_split && Left::can_split(magnitudes[0]) && Left::can_split(magnitudes[1]);
      is_split = __all_sync(all_lanes, is_split);
      work.finish(tile, sums, is_split, memory + strips + warp * Left::strip, tile.first_row + warp * 16,
                  thread_id % 32);
    }
  }
};

}  // namespace russet_cuda

/// As of split_product.metal. Warpgroups that multiply have more registers than those that bring, up to the end.
template <uint BYTES, class LeftLoader, class RightLoader, class Work>
inline void multiply_slices(const Work& work, float* memory, uint thread_id) {
  typedef russet_cuda::SplitSlices<LeftLoader, RightLoader> Slices;
  static_assert(Slices::floats * sizeof(float) == BYTES, "the launch asks for the memory of the slices");
  const Slices slices{memory};
  if (thread_id < Slices::bringing) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 88;");
    slices.bring(work, thread_id);
  } else if (thread_id < Slices::bringing + Slices::splitting) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    slices.split_slices(work, thread_id - Slices::bringing);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 184;");
    slices.multiply(work, thread_id - Slices::bringing - Slices::splitting);
  }
}
#endif
