#pragma once
// Piece: a kernel's text without its entry point, so that it can have one of its own or share one with others.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/gpu/library.h"

namespace russet::gpu {

/// A body in the kernel dialect and what its words mean. It may use group_id, group_count (x and y), thread_id,
/// lane_id, simdgroup_id, and `values`. Names of its own types and functions carry "@".
struct Piece {
  struct Argument {
    std::string type;
    std::string name;
    bool writes = false;
  };
  /// An array that the threadgroup shares.
  struct Array {
    std::string type;
    std::string name;
    std::string count;
    /// Not 0: so many bytes are asked for by the launch, since they are more than threadgroups have without. One array
    /// of a kernel may be such, and its launch shares with no other.
    std::uint32_t large_bytes = 0;
    bool operator==(const Array&) const = default;
  };

  std::string stem;
  std::uint32_t threads = 32;  // of a threadgroup
  std::uint32_t resident = 1;  // threadgroups that a core is to hold at once, at the price of registers
  std::string declarations;
  std::vector<Argument> arguments;
  std::string values_type;       // of `values`
  bool values_are_wide = false;  // they hold members of 8 bytes
  bool values_change = false;    // from run to run
  std::vector<Array> arrays;
  std::string body;
  std::vector<std::string> files;  // as in Source
  bool shares = true;              // its launch with other pieces
};

/// The piece as a kernel.
Source source_of(const Piece& piece);

/// Whether the piece runs on one simdgroup without barriers: then several of its threadgroups can form one.
bool is_simdgroup(const Piece& piece);

/// Several pieces as one kernel, of as many threads as the largest has; those with fewer are simdgroups. Its
/// threadgroups belong to members, a member runs one of the pieces.
///     struct Member_@ {
///       ulong places[most arguments of a piece];   // where memory lies: see Launch::places
///       ulong values[most values of a piece];      // its piece's
///       uint first, count, piece, width, height;   // where it begins; members; its piece; its grid
///     };
/// A member begins where its threadgroup 0 stands in the launch's grid. Of the first member that may be before the
/// launch (a number below 0, wrapped), which then has the rest of its threadgroups: the others are found from their
/// own. `values`: how many there are. `bytes`: the size of a member. `bases`: 0 where places are addresses.
Source source_of(const std::vector<Piece>& pieces, std::size_t values, std::size_t bytes, std::uint32_t bases);

/// The arrays that such a kernel has: those of its pieces, which share what is alike.
std::vector<Piece::Array> shared_arrays(const std::vector<Piece>& pieces);

/// A piece's part of a kernel that goes sample by sample.
struct SamplePart {
  std::size_t piece = 0;               // which
  std::vector<std::size_t> arguments;  // which of the kernel's
  /// Threads that run a unit of it together (Units of gpu_kernel.h), and how many units a sample has; 0 if each sample
  /// is a threadgroup of it.
  std::uint32_t unit = 0, units = 0;
  std::array<std::uint32_t, 2> groups{1, 1};  // of the piece alone
  /// Its values as they lie in memory, which become a part of the text: compilers know them then. Empty if they change
  /// from run to run: then they are the kernel's.
  std::vector<std::uint64_t> values{};
};

/// An argument of such a kernel: memory that is bound, as IN, IN_APART or OUT, and memory of the threadgroup.
struct SampleArgument {
  std::string_view binding;  // empty: of the threadgroup alone
  bool is_held = false;      // in the threadgroup's memory; what is bound as well is brought there at the start
  std::int64_t at = 0;       // bytes from its begin
  /// From sample to sample, as the pieces count them: each lies where the one before did.
  std::int64_t sample_bytes = 0;
  std::size_t bytes = 0;  // that are brought
};

/// Several pieces as one kernel with a threadgroup of `threads` for each sample, which runs its part of one piece after
/// the other. `held`: bytes of threadgroup memory for arguments.
Source source_of_samples(const std::vector<Piece>& pieces, const std::vector<SamplePart>& parts,
                         const std::vector<SampleArgument>& arguments, std::uint32_t threads, std::uint32_t held);

/// The most pieces of a kernel.
inline constexpr std::size_t most_pieces = 16;
/// The most bases of a kernel: with the table they are its bindings.
inline constexpr std::uint32_t most_bases = 28;

}  // namespace russet::gpu
