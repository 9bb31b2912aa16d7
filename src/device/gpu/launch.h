#pragma once
// What the shared GPU body asks of a driver (metal, cuda): kernel text made into pipelines, and launches of them.
#include <russet/chips.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/gpu/patch.h"
#include "runtime/device.h"

namespace russet::gpu {

class VendorLibrary;

/// An entry point of a unit, and how many threads its threadgroups have: a multiple of 32, the kernel's stated maximum.
struct EntryPoint {
  std::string name;
  std::uint32_t threads = 32;
  /// Bytes of threadgroup memory that its launches ask for, besides those of its arrays: LARGE_GROUP_MEMORY.
  std::uint32_t large_memory = 0;
  bool operator==(const EntryPoint&) const = default;
};

/// Text in the kernel dialect (docs/devices/dialect.md) that is compiled as one; the driver puts its prelude before it.
struct CompilationUnit {
  std::string text;
  std::vector<EntryPoint> entry_points;
};

/// What a launch runs: a compiled entry point, or a call of a vendor's library. Drivers derive from it.
class Pipeline {
 public:
  virtual ~Pipeline() = default;
};

/// The bytes of a tensor as a kernel may touch them: what lies outside is not the kernel's.
struct Binding {
  std::byte* address = nullptr;  // inside memory that this driver allocated
  std::size_t bytes = 0;
  bool writes = false;
  /// An earlier launch wrote a part of what this one writes: what it left undefined stays so.
  bool continues = false;
};

/// A matrix of 16-bit elements in a buffer, boxes of which a kernel has brought to threadgroup memory, zeros beyond its
/// ends: 128 bytes of the parameters, at a multiple of 64, tell the GPU of it (TensorMap of warpgroup_product.metal).
struct TensorMap {
  std::uint32_t at = 0;      // in the parameters
  std::uint32_t buffer = 0;  // whose number it is
  std::uint64_t offset = 0;  // bytes from the buffer's begin to the first element; a multiple of 16 with the address
  std::uint64_t width = 0;   // elements of a line, which lie side by side
  std::uint64_t height = 0;  // lines
  std::uint64_t stride = 0;  // bytes from line to line, a multiple of 16
  std::uint32_t box_width = 64, box_height = 0;
};

struct Launch {
  const Pipeline* pipeline = nullptr;
  // Of an entry point; a library's call knows its own.
  std::array<std::uint32_t, 3> groups{1, 1, 1};  // threadgroups; y and z at most 65,535
  std::uint32_t threads = 32;                    // a threadgroup
  std::span<const Binding> buffers;              // bound at 0, 1, ...; at most 30, or max_sample_buffers
  std::span<const std::byte> parameters;         // at most 4 KiB, bound after the buffers
  bool parameters_change = false;                // from run to run: the kernel takes CHANGING_VALUES or a TABLE
  /// Where there are places, the buffers are reached through a table, which is the parameters and may be of any length.
  /// At places[i] of it the driver writes 8 bytes, where buffer i begins: its address if there are no bases. Else the
  /// blocks of memory that the buffers lie in, at most `bases`, are bound at 0 to bases - 1, the table after them, and
  /// the highest byte is the number of the buffer's base, the others its offset from there.
  std::span<const std::uint32_t> places{};
  std::uint32_t bases = 0;
  std::span<const Patch> patches{};   // of the parameters, if they change
  std::span<const TensorMap> maps{};  // in the parameters, which do not change then
  bool buffers_move = false;          // a run-time argument says where one of them begins
  /// Whether it is a further part of the launch before it: both touch the same ranges, and neither touches a byte that
  /// the other writes.
  bool is_further_part = false;
  double seconds = 0;  // that it takes at least, by the model of the chip
};

/// Limits and parameters that kernels are chosen by.
struct Properties {
  std::string family;  // "apple7" ... "apple10"
  std::uint32_t max_threads = 1024;
  std::uint32_t group_memory = 32768;
  /// What launches are modelled by, and how long they may be: longer ones are cut.
  Chip chip = chips().front();
  double longest_launch = 0.05;  // seconds
  /// Bytes that a step may move which shares a launch with others: for more, a kernel of its own is worth it.
  std::size_t most_shared_bytes = std::numeric_limits<std::size_t>::max();
  std::size_t bytes_apart = 0;  // see compile::Target
  /// Whether tables say at which addresses memory lies, rather than at which places of blocks that are bound.
  bool tables_hold_addresses = false;
  /// What an operation costs beside a byte that memory moves; see compile::Target.
  double cost_of_operations = 0.1;
  /// Whether contractions and pools compute what they read: less memory moves, but an element may be computed often.
  bool takes_prologues = true;
  /// Whether pools store where their maxima were for their gradients.
  bool keeps_positions = false;
  /// Whether groups store masks four elements to a byte.
  bool packs_masks = false;
  /// Whether steps of little work run sample by sample in one launch (samples.h).
  bool runs_samples = false;
  /// Bytes of threadgroup memory, beside `group_memory`, in which they may keep what they hand on, and what they all
  /// read: of a GPU whose pointers to memory may point there.
  std::uint32_t sample_memory = 0;
  /// Whether fragments of matrices (kernels/fragments.metal) are multiplied by tensor cores.
  bool has_fragments = false;
  /// Whether groups of four simdgroups multiply what lies in threadgroup memory by tensor cores, and threadgroups may
  /// have nearly all memory of a core for that (kernels/split_product.metal, kernels/warpgroup_product.metal).
  bool has_warpgroups = false;
  /// Whether memory is copied to threadgroup memory by no threads (kernels/samples.metal,
  /// kernels/warpgroup_product.metal).
  bool has_bulk_copies = false;
  /// Elements of a row that a thread takes in registers, and values of them that it keeps from one sweep to the next.
  int row_elements = 16;
  int kept_values = 64;
  std::string name{};    // "Apple M2 Pro"; empty: what is found out of this GPU is not kept
  std::string system{};  // version and build of the system that compiles its kernels
};

/// A GPU: its memory, and one stream of launches. Launches run in the order in which barriers
/// divide them: between two barriers in any order, or at once.
class Driver : public runtime::DeviceDriver {
 public:
  virtual Properties gpu_properties() const = 0;
  /// Whether the host reads and writes the GPU's memory in place.
  virtual bool shares_memory_with_host() const { return true; }
  /// Pipelines of all entries of all units, in order; units are compiled side by side, and known ones come from a
  /// cache. Throws DeviceError with the compiler's words.
  virtual std::vector<std::shared_ptr<const Pipeline>> build(std::span<const CompilationUnit> units) = 0;
  /// What goes before our own kernels, best first. Made when they are first asked for; thread-safe.
  virtual std::span<const std::unique_ptr<const VendorLibrary>> vendor_libraries() const { return {}; }
  virtual void launch(const Launch& launch) = 0;
  /// The block of memory that holds these bytes, by which a launch with bases binds them. Equal pointers: the same
  /// block.
  virtual const void* block_of(const std::byte* address, std::size_t bytes) const = 0;
  /// Later launches see the writes of all earlier ones.
  virtual void barrier() = 0;
  /// Runs launches one after another, apart from all others and after them, and waits: the seconds that the GPU took,
  /// or 0 if it does not tell. What launch() was given is unaffected. Throws DeviceError if the launches fail.
  virtual double time(std::span<const Launch> /*launches*/) { return 0; }
  /// Starts what has been launched. Does not wait; synchronize() does, and throws what went wrong.
  void commit() override = 0;
};

}  // namespace russet::gpu
