#pragma once
// CommandStream: launches become command buffers, command buffers run one after another, and what fails is known by
// address.
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/range_set.h"
#include "device/gpu/launch.h"
#include "device/gpu/metal/capture.h"
#include "device/gpu/metal/compiler.h"
#include "device/gpu/metal/hooks.h"
#include "device/gpu/metal/memory_blocks.h"
#include "graph/buffer.h"

namespace russet::metal {

/// A piece of memory that tables of launches are written to.
struct Chunk {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::size_t used = 0;
};

/// A command buffer that was committed.
struct Batch {
  base::RangeSet reads;
  base::RangeSet writes;
  std::vector<Chunk> chunks;                // that its launches read
  std::vector<Ref<graph::Buffer>> lenders;  // whose memory its launches are the last to read
  int launches = 0;
  double modelled = 0;  // seconds that the launches take at least
  // Guarded by CommandStream's completions:
  bool done = false;
  double seconds = 0;  // on the GPU
  std::string failure;
};

/// Not thread-safe: the driver locks. Memory handed to it may be overwritten or freed by the host only after
/// wait_for.
class CommandStream {
 public:
  /// `capture` counts the command buffers, if there is one.
  CommandStream(const Gpu& gpu, MemoryBlocks& memory, Capture* capture = nullptr);
  ~CommandStream();
  CommandStream(const CommandStream&) = delete;
  CommandStream& operator=(const CommandStream&) = delete;

  /// Encodes a launch, and commits when the command buffer is long enough. Throws DeviceError if it would read, or
  /// continue, what a failed command buffer left undefined.
  void launch(const gpu::Launch& launch);
  void barrier();
  void commit();
  /// A value begins here with the next launch that touches the range, as far as it does: for the simulator's checks.
  void begin_value(base::ByteRange range) {
    if (hooks == nullptr) return;
    births_.remove(range);
    births_.add(range);
  }

  enum class HostAccess : std::uint8_t { read, write };
  /// Waits until the host may read or write the range: until no work that was launched touches it in conflict.
  void wait_for(base::ByteRange range, HostAccess access);
  /// Whether the host may read the range at once: no work that was launched writes it, and none that failed did.
  bool is_idle(base::ByteRange range);
  /// No later launch reads the lender's memory: it is released when the launches so far have completed.
  void end_borrowing(const Ref<graph::Buffer>& lender);
  /// Waits for everything.
  void finish();
  /// Likewise. Throws what went wrong since the last call, if launch() has not.
  void synchronize();

  /// Throws what went wrong if what lies in the range was lost with it.
  void check(base::ByteRange range) const;
  /// The host wrote the range, or its memory starts a new life.
  void forget(base::ByteRange range) {
    lost_.remove(range);
    births_.remove(range);
  }

  /// Launches a command buffer gets at most, as measured.
  int length() const { return length_; }
  /// GPU time of all command buffers that have completed.
  double gpu_seconds() const { return seconds_; }

 private:
  struct Completions {
    std::mutex mutex;
    std::condition_variable changed;
  };

  void make_queue();
  void begin();
  void encode(const gpu::Launch& launch);
  void bind(MTL::Buffer* buffer, std::size_t offset, std::size_t index);
  void bind_buffers(const gpu::Launch& launch);
  /// Binds the blocks of memory that the buffers lie in, and the table, after writing the buffers' addresses into it.
  void bind_bases(const gpu::Launch& launch);
  void bind_parameters(std::span<const std::byte> parameters, std::size_t index);
  /// Memory that comes back when the command buffer that is being written has completed.
  std::byte* take_memory(std::size_t bytes);
  void take_back(Batch& batch);
  void note(const gpu::Launch& launch);
  void wait(const std::shared_ptr<Batch>& batch);
  /// Takes completed command buffers off the list, learns from their times, and deals with a failure.
  void settle();
  void adapt(const Batch& batch);
  void fail(const std::string& reason);
  [[noreturn]] void tell_failure();

  const Gpu& gpu_;
  MemoryBlocks& memory_;
  Capture* capture_;
  NS::SharedPtr<MTL::CommandQueue> queue_;
  NS::SharedPtr<MTL::Fence> fence_;
  // The command buffer that is being written.
  NS::SharedPtr<MTL::CommandBuffer> buffer_;
  NS::SharedPtr<MTL::ComputeCommandEncoder> encoder_;
  std::shared_ptr<Batch> batch_;
  const gpu::Pipeline* pipeline_ = nullptr;
  std::vector<BufferOffset> bound_;
  bool launched_since_barrier_ = false;
  base::RangeSet births_;
  std::vector<Chunk> chunks_;     // that no command buffer reads
  std::vector<std::byte> table_;  // of the launch that is being encoded

  std::deque<std::shared_ptr<Batch>> in_flight_;
  std::shared_ptr<Completions> completions_ = std::make_shared<Completions>();
  int length_;
  double seconds_ = 0;
  double seconds_per_launch_ = 0;
  base::RangeSet lost_;         // what failed command buffers should have written
  std::exception_ptr failure_;  // the last one
  bool failure_is_new_ = false;
};

}  // namespace russet::metal
