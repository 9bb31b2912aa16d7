#pragma once
// GpuKernel: a step of a plan on a GPU, as a list of launches whose text depends on structure alone. Emitter and
// templates describe launches; running one fills in addresses and run-time arguments.
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "compile/implementation.h"
#include "device/gpu/launch.h"
#include "device/gpu/library.h"
#include "device/gpu/piece.h"
#include "device/gpu/stream.h"
#include "device/gpu/table.h"

namespace russet::gpu {

inline constexpr int max_buffers = 30;  // of a launch, besides its values
/// The same on a GPU whose launches may go sample by sample (Properties::runs_samples), which Metal's do not.
inline constexpr int max_sample_buffers = 120;
inline constexpr std::size_t max_value_bytes = 4096;

class TileAdviser;

/// What the emitter and the templates need of the device.
struct GpuContext {
  Library& library;
  Stream& stream;
  Properties properties;
  TileAdviser* tiles = nullptr;  // nullptr: contractions take the tiles of the table
};

/// Bytes [offset, offset + bytes) of a slot that one launch touches through one binding.
struct Region {
  static constexpr std::int32_t scratch = -1;
  std::int32_t slot = scratch;
  std::int64_t offset = 0;
  std::size_t bytes = 0;
  bool writes = false;
  /// Run-time argument whose value times `scale` is added to the offset, or -1.
  std::int32_t argument = -1;
  std::int64_t scale = 0;
};

/// The region of an array's elements, and where its element (0, 0, ...) lies in it (0 unless a stride is negative).
struct Placed {
  Region region;
  std::int64_t first = 0;  // elements
};
Placed place(const compile::Access& access, const Shape& sizes, bool writes);
inline Placed place(const compile::Operand& operand, bool writes) {
  return place(operand.access, operand.sizes, writes);
}

/// Where a region lies in a run.
Binding bound(const Region& region, const compile::Bindings& bindings);

/// The inline bytes of a launch, member by member in the order of its VALUES struct: 8-byte members first.
class Values {
 public:
  /// Adds a member (or an element of an array) of type int, uint, long, ulong or float; returns where it lies.
  template <class T>
  std::uint32_t add(T value) {
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
    const std::size_t at = (bytes.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
    return static_cast<std::uint32_t>(at);
  }
  /// Adds a member that a run-time argument fills in: 8 bytes for `bits`, 4 for others.
  void add_argument(std::int32_t argument, Patch::Form form) {
    const std::uint32_t at = form == Patch::Form::bits ? add(std::uint64_t{0}) : add(std::uint32_t{0});
    patches.push_back({at, argument, form});
  }
  /// Adds a member that tells of a matrix; it lies at a multiple of 64.
  void add_map(TensorMap map) {
    constexpr std::size_t map_bytes = 128;
    align(64);
    map.at = static_cast<std::uint32_t>(bytes.size());
    bytes.resize(bytes.size() + map_bytes);
    maps.push_back(map);
  }
  /// Fills up to a multiple of 8, or of another unit: where a struct with members of so many bytes ends, or begins.
  void align(std::size_t unit = 8) { bytes.resize((bytes.size() + unit - 1) / unit * unit); }
  /// Adds the members of another struct, which begins with one of 8 bytes or follows an even number of others.
  void append(const Values& more) {
    const auto offset = static_cast<std::uint32_t>(bytes.size());
    bytes.insert(bytes.end(), more.bytes.begin(), more.bytes.end());
    for (Patch patch : more.patches) {
      patch.at += offset;
      patches.push_back(patch);
    }
    for (TensorMap map : more.maps) {
      map.at += offset;
      maps.push_back(map);
    }
  }

  std::vector<std::byte> bytes;
  std::vector<Patch> patches;
  std::vector<TensorMap> maps;
};

/// A member of a launch that several share: its memory, and its entry of the kernel's table (Member_@ of piece.h) but
/// for what the launch alone knows: places, first, count.
struct Member {
  std::vector<Region> regions;
  Values entry;
  std::uint32_t groups = 0;  // in this launch
  /// Its first threadgroup in this launch; not 0 only of the launch's first member, which earlier launches began.
  std::uint32_t first = 0;
  double seconds = 0;  // of these threadgroups
};

/// What of a launch may run apart from the rest, if anything: without barriers, `threads` threads together, a single
/// one or a simdgroup, of threadgroups along x. The units come in the row-major order of what they compute.
struct Units {
  std::uint64_t count = 0;  // 0: threadgroups alone run apart
  std::uint32_t threads = 1;
};

/// One launch: `regions` are bound at 0, 1, ...; the values, if there are any, after them.
struct Call {
  FunctionPtr function;
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::vector<Region> regions;
  Values values;
  /// The text of the function as a piece, if it can share a launch; else nullptr.
  std::shared_ptr<const Piece> piece;
  /// If there are any, the launch is theirs: `regions`, `values` and `groups` say nothing. Where members lie in more
  /// blocks of memory than the table's kernel reaches, there are several launches.
  std::vector<Member> members;
  std::shared_ptr<const Table> table;
  Units units;
  double seconds = 0;            // that it takes at least, by the model of the chip
  bool is_slice = false;         // a part of a launch that was cut: has a command buffer of its own
  bool is_further_part = false;  // of the call before it; see Launch
};

/// A call without members as a launch, in memory of its own.
class FilledCall {
 public:
  FilledCall() = default;
  FilledCall(const FilledCall&) = delete;
  FilledCall& operator=(const FilledCall&) = delete;

  /// The function must have been built.
  void fill(const Call& call, const compile::Bindings& bindings);
  const Launch& launch() const { return launch_; }

 private:
  std::array<Binding, max_sample_buffers> buffers_;
  std::array<std::byte, max_value_bytes> values_;
  Launch launch_;
};

/// A call of a piece. `values` are those of the piece's values_type.
Call make_call(Piece piece, std::array<std::uint32_t, 3> groups, std::vector<Region> regions, Values values,
               const GpuContext& context);

/// Whether the call can share a launch with another one that has a piece of as many threads, or of one simdgroup.
bool can_share(const Call& call);
/// Calls that do not touch each other's results as one launch, or as few as there can be.
std::vector<Call> share_launch(std::vector<Call> calls, const GpuContext& context);
/// Calls of pieces as one launch, whose kernel finds its member in a table. All threadgroups must fit one grid.
Call shared_call(const std::vector<Call>& calls, const GpuContext& context);
/// Gives shared launches whose tables have pieces in common one kernel with the pieces of all.
void share_tables(std::span<Call* const> calls, const GpuContext& context);
/// The calls, but for those that take longer than the device's `longest_launch` launches of ranges of their
/// threadgroups.
std::vector<Call> sliced(std::vector<Call> calls, const GpuContext& context);

/// A step on a GPU. Running it encodes its calls; they run in order where one reads what another wrote.
class GpuKernel final : public compile::Kernel {
 public:
  /// `scratch_bytes` lie behind Region::scratch. A call with an empty grid is left out.
  GpuKernel(const GpuContext& context, std::string name, std::vector<Call> calls, std::size_t scratch_bytes = 0);

  /// Sets the modelled time of each launch, and cuts those that take too long. The model gives the time of the whole
  /// step: the launch that touches most memory is assumed to take all of it, others in proportion to their memory.
  void model(double seconds, const GpuContext& context);

  /// Before each run the host waits for the step's indices, and checks them.
  void check_indices_of(const compile::Primitive& primitive);

  void run(const compile::Bindings& bindings) const override;
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  bool only_launches() const override;
  std::string name() const override { return name_; }

  int launches() const override { return static_cast<int>(calls_.size()); }

  const std::vector<Call>& calls() const { return calls_; }
  std::vector<Call>& calls() { return calls_; }

 private:
  void run_members(const Call& call, const compile::Bindings& bindings) const;

  Library& library_;
  Stream& stream_;
  std::string name_;
  std::vector<Call> calls_;
  std::size_t scratch_bytes_;
  std::optional<compile::Primitive> checked_;  // whose indices are checked
  std::vector<Region> index_regions_;          // where they lie
};

/// How templates answer: see compile/implementation.h. `judge(primitive, context)`.
using compile::accept;
using compile::decline;
using compile::KernelPtr;
using compile::Verdict;
using Implementation = compile::Implementation<const GpuContext&>;

/// The templates of an operator, from the specific to the plain. Primitives that are groups (elementwise, reductions,
/// sources, movement) are not asked for: the emitter takes them. What all decline runs on the CPU.
std::span<const Implementation> implementations(ops::Op op);

/// An epilogue or a whole group for a step that templates build on groups: the emitter's kernels.
KernelPtr make_group_kernel(const compile::Group& group, const GpuContext& context);

}  // namespace russet::gpu
