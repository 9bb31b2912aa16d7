#pragma once
// Tiles of products by warpgroups that multiply what lies in shared memory (PTX ISA 9.7.15, wgmma) and by a copier that
// brings boxes of matrices there (PTX ISA 9.7.9.27, cp.async.bulk.tensor): the work of warpgroup_product.metal. Of
// compute capability 9.0 alone, where NVRTC compiles for sm_90a.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define RUSSET_OWN_WARPGROUP_TILES

/// CUDA's CUtensorMap, which the host writes.
struct alignas(64) TensorMap {
  ulong words[16];
};

namespace russet_cuda {

/// Has a box of a matrix brought that begins at a step of its lines and a line; the barrier's phase waits for its
/// bytes.
inline void bring_box(uint to, const TensorMap* map, uint step, uint line, uint barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(map), "r"(step), "r"(line), "r"(barrier)
      : "memory");
}

/// Descriptors of lines of 128 bytes as boxes bring them (PTX ISA 9.7.15.5.1: swizzling of 128 bytes): of lines along
/// the depth, and of 64 columns to a line, in pieces of 64 lines. Their lower words count places by sixteen bytes.
inline uint lines_descriptor(uint address) { return (address >> 4 & 0x3fff) | 1u << 16; }
inline uint columns_descriptor(uint address) { return (address >> 4 & 0x3fff) | 512u << 16; }
inline ulong whole_descriptor(uint lower) {
  ulong descriptor;
  asm("mov.b64 %0, {%1, %2};" : "=l"(descriptor) : "r"(lower), "r"(64u | 1u << 30));
  return descriptor;
}

/// A number that all lanes of a warp have, where the compiler can't tell.
inline uint same_in_warp(uint number) { return __shfl_sync(0xffffffffu, number, 0); }

#define RUSSET_MULTIPLY_TILE(type)                                                                              \
  asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32." type \
               "." type                                                                                         \
               " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "        \
               "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "          \
               "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "          \
               "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, adds, 1, 1, 0, %67; }"        \
               : RUSSET_EIGHT(0), RUSSET_EIGHT(8), RUSSET_EIGHT(16), RUSSET_EIGHT(24), RUSSET_EIGHT(32),        \
                 RUSSET_EIGHT(40), RUSSET_EIGHT(48), RUSSET_EIGHT(56)                                           \
               : "l"(left), "l"(right), "r"(adds), "n"(COLUMNS))
/// Adds 64 x 16 by 16 x 128 to sums, or replaces them. COLUMNS: 1 if the right factor's neighbours are columns.
template <int COLUMNS>
inline void multiply_tile(float (&sums)[64], ulong left, ulong right, int adds, bfloat) {
  RUSSET_MULTIPLY_TILE("bf16");
}
template <int COLUMNS>
inline void multiply_tile(float (&sums)[64], ulong left, ulong right, int adds, half) {
  RUSSET_MULTIPLY_TILE("f16");
}
#undef RUSSET_MULTIPLY_TILE
#undef RUSSET_EIGHT

/// Where a slice lies, one of PLACES, and the parity of the phase in which it is there. Counted up: a division for each
/// slice took more instructions than its products.
template <uint PLACES>
struct SlicePlace {
  uint index = 0, parity = 0;

  void advance(uint slices) {
    index += slices;
    parity ^= index / PLACES % 2;
    index %= PLACES;
  }
  void advance() {
    const bool wraps = index + 1 == PLACES;
    index = wraps ? 0 : index + 1;
    parity ^= wraps ? 1u : 0u;
  }
};

/// Slices of 64 of the depth, one after the other for all tiles, each in one of five places. Warpgroups 0 and 1 have
/// every other tile, 2 and 3 the rest; of the last one a thread brings slices.
template <uint BYTES, class Work>
struct TilesOfWarpgroups {
  typedef typename Work::Element Element;
  enum : uint {
    slice = 64,
    places = 5,
    factor = Work::side * slice * 2,  // bytes of a slice
    tiles = places * 2 * factor,      // where a tile of each pair lies
    tile = Work::side * Work::side * 2,
    barriers = tiles + 2 * tile,
    bytes = barriers + 2 * places * 8,
    pair = 256,  // threads
    // Barriers by number: of a pair's turn to multiply, and of its tile.
    turn_of = 1,
    tile_of = 3,
  };
  typedef SlicePlace<places> Place;
  static_assert(bytes == BYTES, "the launch asks for the memory of the slices");
  uint4* memory;
  uint begin;  // its address

  uint full(uint index) const { return begin + barriers + index * 8; }
  uint empty(uint index) const { return full(index) + places * 8; }

  void make_barriers() const {
    UNROLL for (uint i = 0; i < places; ++i) {
      make_barrier(full(i), 1);
      make_barrier(empty(i), pair / 128);
    }
    show_barriers();
  }

  void bring(const Work& work, uint slices) const {
    Place place;
    for (uint tile = work.first; tile < work.count(); tile += work.step) {
      const uint row = work.first_row(tile);
      const uint column = work.first_column(tile);
      for (uint step = 0; step < slices * slice; step += slice, place.advance()) {
        const uint barrier = full(place.index);
        const uint left = begin + place.index * (2 * factor);
        const uint right = left + factor;
        wait_for_phase(empty(place.index), place.parity ^ 1);
        arrive_expecting(barrier, 2 * factor);
        bring_box(left, work.left_map, step, row, barrier);
        if constexpr (Work::right_along != 0) {
          bring_box(right, work.right_map, step, column, barrier);
        } else {
          bring_box(right, work.right_map, column, step, barrier);
          bring_box(right + factor / 2, work.right_map, column + 64, step, barrier);
        }
      }
    }
  }

  /// By descriptors' lower words of the factors' slices.
  static void multiply_slice(float (&sums)[64], uint left, uint right, bool adds) {
    constexpr uint step = Work::right_along != 0 ? 2 : 128;  // sixteen of the depth further, in sixteens of bytes
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    UNROLL for (uint i = 0; i < slice / 16; ++i) {
      multiply_tile<Work::right_along == 0>(sums, whole_descriptor(left + i * 2), whole_descriptor(right + i * step),
                                            adds || i != 0, Element(0.0f));
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  }

  /// A pair begins when the other one has all of its slices: by then what it waits for is the phase that a barrier is
  /// in.
  void multiply(const Work& work, uint slices, uint thread_id) const {
    const uint warpgroup = same_in_warp(thread_id / 128);
    const uint own = warpgroup / 2;
    const uint half_of_rows = warpgroup % 2;
    const uint warp = same_in_warp(thread_id % pair / 32);
    const bool tells = thread_id % 128 == 0;
    Element* const elements = reinterpret_cast<Element*>(memory) + (tiles + own * tile) / 2;
    const uint left = lines_descriptor(begin + half_of_rows * (factor / 2));
    const uint right = Work::right_along != 0 ? lines_descriptor(begin + factor) : columns_descriptor(begin + factor);
    Place place;
    place.advance(own * slices);
    bool begins = own == 0;
    for (uint number = work.first + own * work.step; number < work.count(); number += 2 * work.step) {
      float sums[64];
      uint last = 0;
      if (!begins) meet(turn_of + own, 2 * pair);
      begins = false;
      _Pragma("unroll 1") for (uint i = 0; i < slices; ++i) {
        wait_for_phase(full(place.index), place.parity);
        multiply_slice(sums, left + place.index * (2 * factor / 16), right + place.index * (2 * factor / 16), i > 0);
        if (i > 0) {
          asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
          if (tells) arrive(empty(last));
        }
        last = place.index;
        place.advance();
      }
      typename Work::Show show{};
      typename Work::Shown shown = *work.visitor;
      work.begin(show, shown, number, warp, thread_id % 32);
      if (number + work.step < work.count()) come_to(turn_of + 1 - own, 2 * pair);
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
      if (tells) arrive(empty(last));
      // Nobody reads the sums before the wait.
      UNROLL for (uint i = 0; i < 64; ++i) asm volatile("" : "+f"(sums[i]));
      work.leave(elements, sums, warp * 16, thread_id % 32);
      meet(tile_of + own, pair);
      work.show_tile(show, shown, elements, warp, thread_id % 32);
      place.advance(slices);
    }
  }
};

}  // namespace russet_cuda

/// As of warpgroup_product.metal. Warpgroups that multiply have registers of the one that brings, up to the end.
template <uint BYTES, class Work>
inline void run_warpgroup_tiles(const Work& work, uint4* memory, uint thread_id) {
  typedef russet_cuda::TilesOfWarpgroups<BYTES, Work> Tiles;
  const Tiles tiles{memory, russet_cuda::shared_address(memory)};
  const uint slices = (work.values->depth + Tiles::slice - 1) / Tiles::slice;
  if (thread_id == 0) tiles.make_barriers();
  __syncthreads();
  if (thread_id < 2 * Tiles::pair) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
    tiles.multiply(work, slices, thread_id);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    if (thread_id == 2 * Tiles::pair) tiles.bring(work, slices);
  }
}
#endif
