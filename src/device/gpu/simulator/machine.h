#pragma once
// The simulated GPU: compiles kernel text for this computer and executes threadgroups, checking what hardware forgives.
// Knows nothing of Metal's host objects: the stand-in for them (objects/) calls it, and so do tests.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace russet::simulator {

/// What is simulated. Read once from the environment: RUSSET_SIMULATOR is a comma-separated list of words
/// (unchecked, flush_subnormals, small_groups, coarse).
struct SimulatorOptions {
  bool checked = true;            // races, bounds, initialisation, divergence, arithmetic
  bool flush_subnormals = false;  // as Apple GPUs may
  std::uint32_t max_threads = 1024;
  /// Functions of precise:: are no better than Metal documents, and sums of a simdgroup and of its matrices have
  /// another order.
  bool coarse = false;
};
const SimulatorOptions& options();

class Kernel;

/// A compiled text. Compilations are cached on disk by content.
class Module {
 public:
  virtual ~Module() = default;
  /// nullptr if the text has no such entry point.
  virtual const Kernel* find(std::string_view name) const = 0;
};

/// Compiles a text (without prelude) with clang. Throws Error with the compiler's words. Thread-safe.
std::shared_ptr<const Module> compile(std::string_view text);

/// Threads that the kernel states as its maximum.
std::uint32_t max_threads(const Kernel& kernel);

/// Memory behind a binding. `begin` is where index 0 lies; the kernel may touch [begin, begin + bytes) and nothing
/// else.
struct BoundMemory {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool writable = false;
  std::string_view name;  // of the tensor, for reports
};

/// How a buffer is reached through a table: at byte `place` of the values lies the number of its base in the highest
/// byte and the offset from there in the seven others.
struct Reached {
  std::uint32_t base = 0;
  std::size_t place = 0;
};

struct Dispatch {
  const Kernel* kernel = nullptr;
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::uint32_t threads = 32;
  std::vector<BoundMemory> buffers;  // by binding index
  std::vector<std::byte> values;     // inline bytes or the table, bound after the buffers; empty if none
  /// If there are any: how each of the buffers is reached, through the bases that are bound in their place.
  std::vector<Reached> reached{};
  std::vector<std::byte*> bases{};
};

/// Something that a check found.
struct CheckReport {
  std::string check;  // "race", "bounds", "uninitialised", "divergence", "arithmetic", "launch", ...
  std::string kernel;
  std::string message;  // line, threads, tensor
};

/// Executes dispatches that no barrier separates: in shuffled order, seeded, and reports it where two of them conflict.
void execute(std::span<const Dispatch> dispatches);

/// Marks memory as never written (a tensor's birth), or as written by the host. Outside of it nothing is tracked.
void mark_uninitialised(const std::byte* begin, std::size_t bytes);
void mark_initialised(const std::byte* begin, std::size_t bytes);

/// Adds a finding of a caller's own: the stand-in for Metal's objects reports what it checks here too.
void add_report(CheckReport report);
/// Reports since the last call. Each is also logged to standard error once.
std::vector<CheckReport> take_reports();

}  // namespace russet::simulator
