#pragma once
// What a compiled kernel and the simulated GPU know of each other. Included by both, so it needs no other header.

namespace russet_simulator {

/// A memory space that a barrier orders, as Metal's mem_flags number them.
enum MemorySpace : unsigned { no_space = 0, device_space = 1, group_space = 2 };

enum class ArgumentKind : unsigned { in, out, values };

/// An argument of an entry point.
struct Argument {
  ArgumentKind kind;
  unsigned index;
  unsigned bytes;  // of an element; of the whole struct for values, of an entry for a table
  const char* name;
};

/// Threads of a simdgroup.
constexpr unsigned lanes = 32;
constexpr unsigned max_group_threads = 1024;
/// Bytes of group memory that a kernel may declare, and how many arrays.
constexpr unsigned group_memory_bytes = 32768;
constexpr unsigned max_group_arrays = 16;
/// Checked kernels have each array in a window of its own, so that no overrun of one ends in another.
constexpr unsigned group_window_bytes = 65536;
/// Where an array of a checked kernel begins. Windows are staggered, or all would compete for the same lines of a
/// cache.
constexpr unsigned group_array_offset(unsigned index) {
  return index * group_window_bytes + group_window_bytes / 4 + index * 320;
}

/// An array in group memory, for reports and bounds.
struct GroupArray {
  const char* name;
  unsigned bytes;
};

/// A threadgroup that is being executed. Threads are started in order, each when all before it have ended or wait.
struct Threadgroup {
  void* const* buffers;
  const void* values;
  char* group_memory;
  unsigned group_id[3];
  unsigned group_count[3];
  unsigned threads;
  unsigned next;      // thread to be started
  unsigned current;   // thread that runs
  unsigned finished;  // threads that have ended
  unsigned group_bytes;
  unsigned group_arrays;
  GroupArray arrays[max_group_arrays];
};

/// Operands and results of a simdgroup function, by lane.
struct Lanes {
  const void* in[lanes];
  void* out[lanes];
  bool coarse;  // in another order than usual
};

/// An entry point. A module exports it as russet_kernel_NAME.
struct EntryPoint {
  const char* name;
  unsigned threads;  // its stated maximum
  unsigned argument_count;
  const Argument* arguments;
  /// Starts and executes threads until none is left to start.
  void (*run)(Threadgroup&);
};

}  // namespace russet_simulator
