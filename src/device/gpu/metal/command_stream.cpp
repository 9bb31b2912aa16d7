#include "device/gpu/metal/command_stream.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace russet::metal {
namespace {

/// Long enough that the cost of a command buffer does not show, short enough that the host does not wait long and that
/// other programs get their share of the GPU.
constexpr double wanted_seconds = 0.008;
constexpr int shortest = 8;
constexpr int first_length = 64;
constexpr int longest = 1024;
/// More command buffers in flight bring nothing; Metal allows 64.
constexpr std::size_t most_in_flight = 16;

/// Whether the launch reads the memory, or adds to what an earlier launch wrote there.
bool reads(const gpu::Binding& binding) { return !binding.writes || binding.continues; }

bool conflicts(const Batch& batch, base::ByteRange range, CommandStream::HostAccess access) {
  return batch.writes.overlaps(range) || (access == CommandStream::HostAccess::write && batch.reads.overlaps(range));
}

}  // namespace

CommandStream::CommandStream(const Gpu& gpu, MemoryBlocks& memory, Capture* capture)
    : gpu_(gpu), memory_(memory), capture_(capture), length_(first_length) {
  make_queue();
}

CommandStream::~CommandStream() {
  if (buffer_) commit();
  for (const auto& batch : in_flight_) wait(batch);
  for (const auto& batch : in_flight_) take_back(*batch);
  for (const Chunk& chunk : chunks_) memory_.release(chunk.begin, chunk.bytes);
}

void CommandStream::make_queue() {
  const PoolScope pool;
  queue_ = NS::TransferPtr(gpu_.device->newCommandQueue());
  if (!queue_) throw DeviceError("mps: Metal makes no command queue");
  if (memory_.residency() != nullptr) queue_->addResidencySet(memory_.residency());
}

void CommandStream::launch(const gpu::Launch& launch) {
  const PoolScope pool;
  if (!buffer_) begin();
  if (!lost_.empty()) {
    for (const gpu::Binding& binding : launch.buffers) {
      if (reads(binding) && lost_.overlaps(base::range_of(binding.address, binding.bytes))) tell_failure();
    }
    for (const gpu::Binding& binding : launch.buffers) {
      if (binding.writes) lost_.remove(base::range_of(binding.address, binding.bytes));
    }
  }
  encode(launch);
  note(launch);
  if (batch_->launches >= length_ || batch_->modelled >= wanted_seconds) commit();
}

void CommandStream::begin() {
  settle();
  if (in_flight_.size() >= most_in_flight) wait(in_flight_[in_flight_.size() - most_in_flight]);
  settle();
  buffer_ = NS::RetainPtr(queue_->commandBuffer());
  if (!buffer_) throw DeviceError("mps: Metal makes no command buffer");
  encoder_ = NS::RetainPtr(buffer_->computeCommandEncoder(MTL::DispatchTypeConcurrent));
  // Metal orders work by the buffers that it touches, and does not see that buffers overlap.
  if (memory_.overlapping()) {
    if (!fence_) fence_ = NS::TransferPtr(gpu_.device->newFence());
    encoder_->waitForFence(fence_.get());
  }
  batch_ = std::make_shared<Batch>();
  pipeline_ = nullptr;
  bound_.clear();
  launched_since_barrier_ = false;
}

void CommandStream::encode(const gpu::Launch& launch) {
  const auto& pipeline = static_cast<const Pipeline&>(*launch.pipeline);
  if (pipeline_ != launch.pipeline) {
    encoder_->setComputePipelineState(pipeline.state.get());
    pipeline_ = launch.pipeline;
  }
  if (launch.bases > 0) {
    bind_bases(launch);
  } else {
    bind_buffers(launch);
  }
  // Only now that a launch touches it: earlier launches may still read the previous value.
  for (const gpu::Binding& binding : launch.buffers) {
    if (births_.empty()) break;
    const base::ByteRange range = base::range_of(binding.address, binding.bytes);
    for (const base::ByteRange birth : births_.parts_of(range)) {
      hooks->begin(encoder_.get(), birth.address(), birth.bytes());
    }
    births_.remove(range);
  }
  encoder_->dispatchThreadgroups(MTL::Size(launch.groups[0], launch.groups[1], launch.groups[2]),
                                 MTL::Size(launch.threads, 1, 1));
}

void CommandStream::bind(MTL::Buffer* buffer, std::size_t offset, std::size_t index) {
  if (bound_.size() <= index) bound_.resize(index + 1);
  if (bound_[index].buffer == buffer && bound_[index].offset == offset) return;
  encoder_->setBuffer(buffer, offset, index);
  bound_[index] = {buffer, offset};
}

void CommandStream::bind_buffers(const gpu::Launch& launch) {
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const gpu::Binding& binding = launch.buffers[i];
    const BufferOffset place = binding.bytes == 0 ? memory_.anywhere() : memory_.find(binding.address, binding.bytes);
    bind(place.buffer, place.offset, i);
    if (hooks != nullptr) hooks->plan(encoder_.get(), static_cast<unsigned>(i), binding.bytes, binding.writes);
  }
  if (!launch.parameters.empty()) bind_parameters(launch.parameters, launch.buffers.size());
}

void CommandStream::bind_bases(const gpu::Launch& launch) {
  constexpr int base_shift = 56;
  std::vector<MTL::Buffer*> bases;
  table_.assign(launch.parameters.begin(), launch.parameters.end());
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const gpu::Binding& binding = launch.buffers[i];
    if (binding.bytes == 0) continue;
    const BufferOffset place = memory_.find(binding.address, binding.bytes);
    const auto base = static_cast<std::size_t>(std::find(bases.begin(), bases.end(), place.buffer) - bases.begin());
    if (base == bases.size()) bases.push_back(place.buffer);
    const std::uint64_t entry = std::uint64_t{base} << base_shift | place.offset;
    std::memcpy(table_.data() + launch.places[i], &entry, sizeof(entry));
    if (hooks != nullptr) {
      hooks->reach(encoder_.get(), static_cast<unsigned>(base), place.offset, binding.bytes, binding.writes,
                   launch.bases, launch.places[i]);
    }
  }
  if (bases.size() > launch.bases) throw InternalError("mps: a launch reaches more blocks of memory than it has bases");
  // What a kernel names must be bound, reached or not.
  if (bases.empty()) bases.push_back(memory_.anywhere().buffer);
  bases.resize(launch.bases, bases.front());
  for (std::size_t i = 0; i < bases.size(); ++i) bind(bases[i], 0, i);
  bind_parameters(table_, launch.bases);
}

void CommandStream::bind_parameters(std::span<const std::byte> parameters, std::size_t index) {
  constexpr std::size_t inline_limit = 4096;
  if (bound_.size() <= index) bound_.resize(index + 1);
  if (parameters.size() <= inline_limit) {
    encoder_->setBytes(parameters.data(), parameters.size(), index);
    bound_[index] = {};
    return;
  }
  std::byte* const memory = take_memory(parameters.size());
  std::copy(parameters.begin(), parameters.end(), memory);
  const BufferOffset place = memory_.find(memory, parameters.size());
  bind(place.buffer, place.offset, index);
  if (hooks != nullptr) hooks->plan(encoder_.get(), static_cast<unsigned>(index), parameters.size(), false);
}

std::byte* CommandStream::take_memory(std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  constexpr std::size_t usual = std::size_t{128} << 10;
  for (Chunk& chunk : batch_->chunks) {
    if (chunk.bytes - chunk.used < bytes) continue;
    std::byte* const memory = chunk.begin + chunk.used;
    chunk.used += std::min((bytes + alignment - 1) / alignment * alignment, chunk.bytes - chunk.used);
    return memory;
  }
  const auto free = std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& c) { return c.bytes >= bytes; });
  if (free != chunks_.end()) {
    batch_->chunks.push_back(*free);
    chunks_.erase(free);
  } else {
    const std::size_t size = std::max(bytes, usual);
    batch_->chunks.push_back({memory_.allocate(size), size, 0});
  }
  return take_memory(bytes);
}

void CommandStream::end_borrowing(const Ref<graph::Buffer>& lender) {
  settle();
  const base::ByteRange range = base::range_of(lender->data(), lender->bytes());
  if (buffer_ && conflicts(*batch_, range, HostAccess::write)) return batch_->lenders.push_back(lender);
  for (auto batch = in_flight_.rbegin(); batch != in_flight_.rend(); ++batch) {
    if (conflicts(**batch, range, HostAccess::write)) return (*batch)->lenders.push_back(lender);
  }
  memory_.end_borrowing(lender->data());
}

void CommandStream::take_back(Batch& batch) {
  for (const Ref<graph::Buffer>& lender : batch.lenders) memory_.end_borrowing(lender->data());
  batch.lenders.clear();
  constexpr std::size_t kept = 8;
  for (Chunk& chunk : batch.chunks) {
    chunk.used = 0;
    if (chunks_.size() < kept) {
      chunks_.push_back(chunk);
    } else {
      memory_.release(chunk.begin, chunk.bytes);
    }
  }
  batch.chunks.clear();
}

void CommandStream::note(const gpu::Launch& launch) {
  for (const gpu::Binding& binding : launch.buffers) {
    const base::ByteRange range = base::range_of(binding.address, binding.bytes);
    if (binding.writes) batch_->writes.add(range);
    if (reads(binding)) batch_->reads.add(range);
  }
  ++batch_->launches;
  batch_->modelled += launch.seconds;
  launched_since_barrier_ = true;
}

void CommandStream::barrier() {
  if (!launched_since_barrier_) return;
  encoder_->memoryBarrier(MTL::BarrierScopeBuffers);
  launched_since_barrier_ = false;
}

void CommandStream::commit() {
  if (!buffer_) return;
  const PoolScope pool;
  if (memory_.overlapping() && fence_) encoder_->updateFence(fence_.get());
  encoder_->endEncoding();
  // What the handler needs, kept until it has run. Plain pointers in a block need no help of a runtime for blocks.
  auto* const ticket = new std::pair(completions_, batch_);
  buffer_->addCompletedHandler(^(MTL::CommandBuffer* completed) {
    const PoolScope handler_pool;
    auto& [completions, batch] = *ticket;
    {
      const std::lock_guard lock(completions->mutex);
      if (completed->status() == MTL::CommandBufferStatusError) {
        batch->failure = fmt::format("{} (code {})", text(completed->error()), completed->error()->code());
      }
      batch->seconds = completed->GPUEndTime() - completed->GPUStartTime();
      batch->done = true;
    }
    completions->changed.notify_all();
    delete ticket;
  });
  buffer_->commit();
  in_flight_.push_back(std::move(batch_));
  encoder_.reset();
  buffer_.reset();
  launched_since_barrier_ = false;
  if (capture_ != nullptr) capture_->count();
}

void CommandStream::wait(const std::shared_ptr<Batch>& batch) {
  std::unique_lock lock(completions_->mutex);
  completions_->changed.wait(lock, [&] { return batch->done; });
}

void CommandStream::wait_for(base::ByteRange range, HostAccess access) {
  if (buffer_ && conflicts(*batch_, range, access)) commit();
  for (std::size_t i = in_flight_.size(); i-- > 0;) {
    if (!conflicts(*in_flight_[i], range, access)) continue;
    for (std::size_t j = 0; j <= i; ++j) wait(in_flight_[j]);
    break;
  }
  settle();
}

bool CommandStream::is_idle(base::ByteRange range) {
  settle();
  const auto writes = [&](const Batch& batch) { return conflicts(batch, range, HostAccess::read); };
  const bool pending = (buffer_ && writes(*batch_)) ||
                       std::ranges::any_of(in_flight_, [&](const auto& batch) { return writes(*batch); });
  return !pending && !lost_.overlaps(range);
}

void CommandStream::finish() {
  commit();
  for (const auto& batch : in_flight_) wait(batch);
  settle();
}

void CommandStream::synchronize() {
  finish();
  for (const base::ByteRange birth : births_) hooks->grant(birth.address(), birth.bytes());
  births_.clear();
  if (failure_is_new_) tell_failure();
}

void CommandStream::tell_failure() {
  failure_is_new_ = false;
  std::rethrow_exception(failure_);
}

void CommandStream::settle() {
  while (!in_flight_.empty()) {
    Batch& batch = *in_flight_.front();
    {
      const std::lock_guard lock(completions_->mutex);
      if (!batch.done) return;
    }
    if (!batch.failure.empty()) return fail(batch.failure);
    adapt(batch);
    take_back(batch);
    in_flight_.pop_front();
  }
}

// Command buffers that were cut short by a commit say as much about a launch's time as long ones.
void CommandStream::adapt(const Batch& batch) {
  seconds_ += batch.seconds;
  if (batch.launches == 0 || batch.seconds <= 0) return;
  const double measured = batch.seconds / batch.launches;
  seconds_per_launch_ = seconds_per_launch_ == 0 ? measured : 0.75 * seconds_per_launch_ + 0.25 * measured;
  length_ = static_cast<int>(std::clamp(wanted_seconds / seconds_per_launch_, double{shortest}, double{longest}));
}

// The first failure is the reason; what was committed after it ran on its results or not at all. The queue takes no
// more work after an error (Metal ignores what a process sends after it), so there is a new one.
void CommandStream::fail(const std::string& reason) {
  failure_ = std::make_exception_ptr(DeviceError(
      fmt::format("mps: the GPU gave up on work that had been started: {}. Values that it should have written are lost "
                  "until they are set again.",
                  reason)));
  failure_is_new_ = true;
  if (buffer_) {  // what is being written never runs
    encoder_->endEncoding();
    encoder_.reset();
    buffer_.reset();
    in_flight_.push_back(std::move(batch_));
    in_flight_.back()->done = true;
    launched_since_barrier_ = false;
  }
  for (const auto& batch : in_flight_) {
    wait(batch);
    for (const base::ByteRange range : batch->writes) lost_.add(range);
    take_back(*batch);
  }
  in_flight_.clear();
  make_queue();
}

void CommandStream::check(base::ByteRange range) const {
  if (!lost_.empty() && lost_.overlaps(range)) std::rethrow_exception(failure_);
}

}  // namespace russet::metal
