#pragma once
// What the driver tells the simulator and a Mac has no use for.
#include <cstddef>
#include <string_view>

namespace russet::metal {

struct Hooks {
  /// The next dispatch of the encoder may touch `bytes` of the buffer bound at `index`, and nothing else.
  void (*plan)(const void* encoder, unsigned index, std::size_t bytes, bool writes);
  /// The next dispatch of the encoder reaches `bytes` at `offset` of the buffer bound at `index` through its table,
  /// which is bound at `table`; where they lie is written at byte `place` of it. It may touch what was announced so
  /// alone.
  void (*reach)(const void* encoder, unsigned index, std::size_t offset, std::size_t bytes, bool writes, unsigned table,
                std::size_t place);
  /// When the next dispatch of the encoder comes, a new value begins here, and what lay here is no value any more.
  void (*begin)(const void* encoder, const void* address, std::size_t bytes);
  /// The driver grants this memory: nothing has been written to it. The address as the host sees it.
  void (*grant)(const void* address, std::size_t bytes);
  /// The host wrote here.
  void (*written)(const void* address, std::size_t bytes);
  /// The memory of this MTLBuffer is the CPU's, and the host keeps off it as off memory that Metal grants.
  void (*guard)(const void* buffer);
};

/// Set by the simulator's objects; nullptr on a Mac.
inline constinit const Hooks* hooks = nullptr;

/// Ends the prelude in the text of a library: the simulator puts its own in the place of what stands before.
constexpr std::string_view end_of_prelude = "\n// russet: kernels\n";

}  // namespace russet::metal
