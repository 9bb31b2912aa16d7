#pragma once
// Metal's objects as the stand-in keeps them, and what tests may set and ask.
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "device/gpu/simulator/machine.h"
#include "device/gpu/simulator/objects/foundation.h"

namespace russet::objects {

/// Limits of the simulated computer; tests lower them to see what the driver does at them.
struct Settings {
  std::string name = "Apple GPU (simulated)";
  int family = 9;  // Apple9: M3
  std::size_t max_buffer_length = std::size_t{4} << 30;
  std::size_t working_set = std::size_t{8} << 30;
  int uncompleted_command_buffers = 64;
  /// Code of the error (MTLCommandBufferError) with which the next command buffer fails; 0: none.
  int next_failure = 0;
  /// Seconds of GPU time that each dispatch is said to take; 0: what it took here.
  double seconds_per_dispatch = 0;
  /// Mutants of the driver: the barrier of this number (Statistics::barriers) is lost, or every wait for a fence is.
  int lost_barrier = -1;
  bool lost_fences = false;
  /// How long a committed command buffer lies before it runs, at most.
  std::chrono::microseconds delay{200};
};
Settings& settings();

/// What was asked for so far.
struct Statistics {
  std::atomic<int> libraries{0};
  std::atomic<int> pipelines_compiled{0};
  std::atomic<int> pipelines_from_archives{0};
  std::atomic<int> command_buffers{0};
  std::atomic<int> encoders{0};
  std::atomic<int> dispatches{0};
  std::atomic<int> barriers{0};
  std::atomic<int> captures{0};
};
Statistics& statistics();
/// Kernels of which there was a pipeline so far, each once: their names tell their content.
std::set<std::string> distinct_kernels();

/// Apple silicon's pages.
constexpr std::size_t page = 16384;
/// Bytes that setBytes takes at most, bindings of a kernel.
constexpr std::size_t inline_limit = 4096;
constexpr std::size_t binding_count = 31;

struct Size {
  unsigned long width = 0;
  unsigned long height = 0;
  unsigned long depth = 0;
};

struct Device final : Object {
  explicit Device(Class& isa) : Object(isa) {}
};
Device& system_device();
/// Lets the driver tell what only the simulator wants to know.
void connect_hooks();

struct CompileOptions final : Object {
  explicit CompileOptions(Class& isa) : Object(isa) {}
  unsigned long language = 0;
  bool fast_math = true;
  long math_mode = 2;       // MTLMathModeFast
  long math_functions = 0;  // MTLMathFloatingPointFunctionsFast
};

struct Library final : Object {
  Library(Class& isa, std::shared_ptr<const simulator::Module> module, std::size_t source)
      : Object(isa), module(std::move(module)), source(source) {}
  std::shared_ptr<const simulator::Module> module;
  std::size_t source;  // a hash of the text
};

struct KernelFunction final : Object {
  KernelFunction(Class& isa, Library& library, std::string name)
      : Object(isa), library(&library), kernel(library.module->find(name)), name(std::move(name)) {}
  Held<Library> library;
  const simulator::Kernel* kernel;
  std::string name;
};

struct PipelineDescriptor final : Object {
  explicit PipelineDescriptor(Class& isa) : Object(isa) {}
  Held<KernelFunction> function;
  Held<Array> archives;
  unsigned long threads = 0;
  bool whole_simdgroups = false;
};

struct ArchiveDescriptor final : Object {
  explicit ArchiveDescriptor(Class& isa) : Object(isa) {}
  Held<Url> url;
};

/// Functions that need not be compiled again, by what identifies them.
struct Archive final : Object {
  explicit Archive(Class& isa) : Object(isa) {}
  std::mutex mutex;
  std::set<std::string> functions;
};

struct PipelineState final : Object {
  PipelineState(Class& isa, KernelFunction& function, unsigned long threads)
      : Object(isa), function(&function), threads(threads) {}
  Held<KernelFunction> function;
  unsigned long threads;
};

struct Buffer final : Object {
  Buffer(Class& isa, std::size_t length);                     // memory of its own
  Buffer(Class& isa, std::byte* memory, std::size_t length);  // the caller's
  ~Buffer() override;

  std::byte* host = nullptr;  // what contents answers
  std::byte* gpu = nullptr;   // the same memory where the simulated GPU sees it
  std::size_t length = 0;
  unsigned long storage_mode = 0;  // MTLStorageMode
  std::atomic<int> in_flight{0};

  /// Work that reads or writes [begin, end) was committed, or has completed.
  void begin_use(std::size_t begin, std::size_t end, bool writes);
  void end_use(std::size_t begin, std::size_t end, bool writes);
  /// Watches memory of the caller's as that of its own is watched. The host sees what it saw, where it saw it.
  void guard();
  /// The host touched `address` while work in flight had it: reports it and lets the host go on.
  void fault(const std::byte* address, bool write);

 private:
  void watch();
  void change(std::size_t begin, std::size_t end, bool writes, int by);
  void protect(std::size_t first, std::size_t last) const;

  bool owned_ = false;
  bool guarded_ = false;  // host and gpu are two mappings
  struct Use {
    std::uint16_t readers = 0;
    std::uint16_t writers = 0;
  };
  std::mutex mutex_;
  std::vector<Use> pages_;
};

struct Fence final : Object {
  explicit Fence(Class& isa) : Object(isa) {}
};

/// One binding of a dispatch; `bytes` as the driver announced them, or to the end of the buffer.
struct Bound {
  Held<Buffer> buffer;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  bool writes = true;
  bool planned = false;  // for the dispatch that comes next
};

/// Where a value begins its life.
struct Birth {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

struct Dispatched {
  Held<PipelineState> pipeline;
  std::vector<Birth> births;
  std::vector<Bound> buffers;
  std::vector<std::byte> values;
  // Of a dispatch that reaches its buffers through a table:
  std::vector<simulator::Reached> reached;  // how each of the buffers is
  std::vector<Held<Buffer>> bases;
  std::optional<Bound> table;  // where it is no inline bytes
  std::array<std::uint32_t, 3> groups{};
  std::uint32_t threads = 0;
};

/// The work of an encoder: dispatches between barriers are a phase.
struct Pass {
  std::vector<std::vector<Dispatched>> phases;
  std::vector<Held<Fence>> waits;
  std::vector<Held<Fence>> updates;
};

struct Block;  // of the compiler: see block.h
struct CommandQueue;

struct CommandBuffer final : Object {
  CommandBuffer(Class& isa, CommandQueue& queue, bool retains) : Object(isa), queue(&queue), retains(retains) {}
  ~CommandBuffer() override;

  enum Status : unsigned long { not_enqueued = 0, committed = 2, completed = 4, error = 5 };

  Held<CommandQueue> queue;
  bool retains;
  std::atomic<unsigned long> status{not_enqueued};
  std::atomic<bool> finished{false};  // and its handlers have run
  bool encoding = false;
  std::vector<std::shared_ptr<Pass>> passes;
  std::vector<Block*> handlers;
  Held<Error> failure;
  double started = 0;
  double ended = 0;
};

struct Encoder final : Object {
  Encoder(Class& isa, CommandBuffer& buffer, bool concurrent);
  ~Encoder() override;

  Held<CommandBuffer> buffer;
  std::shared_ptr<Pass> pass;
  bool concurrent;
  bool ended = false;
  Held<PipelineState> pipeline;
  std::array<Bound, binding_count> bound;
  std::vector<Birth> births;  // with the next dispatch
  std::vector<simulator::Reached> reached;
  std::vector<Bound> reached_buffers;
  std::size_t table_index = 0;
  std::vector<std::byte> values;
  std::optional<std::size_t> values_index;
};

/// What a queue's thread works on; it may outlive the queue.
struct Timeline {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<CommandBuffer*> committed;  // each retained until it has completed
  int uncompleted = 0;                   // made and not completed
  bool failed = false;                   // a command buffer failed: those after it do not run
  bool closed = false;
  std::atomic<bool> paused{false};  // by tests: committed work waits
};

/// Runs what was committed to it, in order, on a thread of its own.
struct CommandQueue final : Object {
  explicit CommandQueue(Class& isa);
  ~CommandQueue() override;

  std::shared_ptr<Timeline> timeline = std::make_shared<Timeline>();
};

/// Waits until all that was committed has completed and its objects are given back.
void drain();

using Passes = std::vector<std::shared_ptr<Pass>>;
/// Runs the passes of a command buffer, those that nothing orders in any order; `later` are passes that were committed
/// before these completed. Returns how many dispatches there were.
int run(const Passes& passes, const Passes& later);
/// Tells buffers that passes start or end being in flight.
void mark_use(const Passes& passes, bool begins);

}  // namespace russet::objects
