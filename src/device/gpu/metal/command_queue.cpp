#include "device/gpu/metal/command_queue.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>

#include "device/gpu/metal/hooks.h"

namespace russet::metal {
namespace {

/// What Metal's thread says of a command buffer.
struct Completion {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  double seconds = 0;  // on the GPU
  std::string failure;
};

class CommandBuffer final : public gpu::Submission {
 public:
  CommandBuffer(std::shared_ptr<Completion> completion, gpu::Chunks& chunks, std::vector<gpu::Chunk> tables)
      : completion_(std::move(completion)), chunks_(chunks), tables_(std::move(tables)) {}
  ~CommandBuffer() override { chunks_.give_back(tables_); }

  bool is_done() const override {
    const std::lock_guard lock(completion_->mutex);
    return completion_->done;
  }
  void wait() const override {
    std::unique_lock lock(completion_->mutex);
    completion_->changed.wait(lock, [&] { return completion_->done; });
  }
  double seconds() const override { return completion_->seconds; }
  std::string failure() const override { return completion_->failure; }

 private:
  std::shared_ptr<Completion> completion_;
  gpu::Chunks& chunks_;
  std::vector<gpu::Chunk> tables_;
};

}  // namespace

CommandQueue::CommandQueue(const Gpu& gpu, const Memory& memory, gpu::MemoryBlocks& blocks, Capture& capture)
    : gpu_(gpu), memory_(memory), blocks_(blocks), capture_(capture), chunks_(gpu::pieces_of(blocks)) {
  restart({});
}

void CommandQueue::restart(const std::string& /*reason*/) {
  const PoolScope pool;
  queue_ = NS::TransferPtr(gpu_.device->newCommandQueue());
  if (!queue_) throw DeviceError("mps: Metal makes no command queue");
  if (memory_.residency() != nullptr) queue_->addResidencySet(memory_.residency());
}

void CommandQueue::begin() {
  const PoolScope pool;
  buffer_ = NS::RetainPtr(queue_->commandBuffer());
  if (!buffer_) throw DeviceError("mps: Metal makes no command buffer");
  encoder_ = NS::RetainPtr(buffer_->computeCommandEncoder(MTL::DispatchTypeConcurrent));
  // Metal orders work by the buffers that it touches, and does not see that buffers overlap.
  if (memory_.overlapping()) {
    if (!fence_) fence_ = NS::TransferPtr(gpu_.device->newFence());
    encoder_->waitForFence(fence_.get());
  }
  pipeline_ = nullptr;
  bound_.clear();
}

void CommandQueue::encode(const gpu::Launch& launch) {
  const PoolScope pool;
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

void CommandQueue::bind(MTL::Buffer* buffer, std::size_t offset, std::size_t index) {
  if (bound_.size() <= index) bound_.resize(index + 1);
  if (bound_[index].buffer == buffer && bound_[index].offset == offset) return;
  encoder_->setBuffer(buffer, offset, index);
  bound_[index] = {buffer, offset};
}

void CommandQueue::bind_buffers(const gpu::Launch& launch) {
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const gpu::Binding& binding = launch.buffers[i];
    const BufferOffset place = binding.bytes == 0 ? anywhere() : find(blocks_, binding.address, binding.bytes);
    bind(place.buffer, place.offset, i);
    if (hooks != nullptr) hooks->plan(encoder_.get(), static_cast<unsigned>(i), binding.bytes, binding.writes);
  }
  if (!launch.parameters.empty()) bind_parameters(launch.parameters, launch.buffers.size());
}

void CommandQueue::bind_bases(const gpu::Launch& launch) {
  constexpr int base_shift = 56;
  std::vector<MTL::Buffer*> bases;
  table_.assign(launch.parameters.begin(), launch.parameters.end());
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const gpu::Binding& binding = launch.buffers[i];
    if (binding.bytes == 0) continue;
    const BufferOffset place = find(blocks_, binding.address, binding.bytes);
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
  if (bases.empty()) bases.push_back(anywhere().buffer);
  bases.resize(launch.bases, bases.front());
  for (std::size_t i = 0; i < bases.size(); ++i) bind(bases[i], 0, i);
  bind_parameters(table_, launch.bases);
}

void CommandQueue::bind_parameters(std::span<const std::byte> parameters, std::size_t index) {
  constexpr std::size_t inline_limit = 4096;
  if (bound_.size() <= index) bound_.resize(index + 1);
  if (parameters.size() <= inline_limit) {
    encoder_->setBytes(parameters.data(), parameters.size(), index);
    bound_[index] = {};
    return;
  }
  std::byte* const memory = chunks_.take(parameters.size(), tables_);
  std::copy(parameters.begin(), parameters.end(), memory);
  const BufferOffset place = find(blocks_, memory, parameters.size());
  bind(place.buffer, place.offset, index);
  if (hooks != nullptr) hooks->plan(encoder_.get(), static_cast<unsigned>(index), parameters.size(), false);
}

void CommandQueue::barrier() { encoder_->memoryBarrier(MTL::BarrierScopeBuffers); }

std::unique_ptr<gpu::Submission> CommandQueue::submit() {
  const PoolScope pool;
  if (memory_.overlapping() && fence_) encoder_->updateFence(fence_.get());
  encoder_->endEncoding();
  const auto completion = std::make_shared<Completion>();
  // What the handler needs, kept until it has run. A plain pointer in a block needs no help of a runtime for blocks.
  auto* const kept = new std::shared_ptr<Completion>(completion);
  buffer_->addCompletedHandler(^(MTL::CommandBuffer* completed) {
    const PoolScope handler_pool;
    const std::unique_ptr<std::shared_ptr<Completion>> owner(kept);
    Completion& said = **owner;
    {
      const std::lock_guard lock(said.mutex);
      if (completed->status() == MTL::CommandBufferStatusError) {
        said.failure = fmt::format("{} (code {})", text(completed->error()), completed->error()->code());
      }
      said.seconds = completed->GPUEndTime() - completed->GPUStartTime();
      said.done = true;
    }
    said.changed.notify_all();
  });
  buffer_->commit();
  encoder_.reset();
  buffer_.reset();
  capture_.count();
  return std::make_unique<CommandBuffer>(completion, chunks_, std::exchange(tables_, {}));
}

void CommandQueue::drop() {
  encoder_->endEncoding();
  encoder_.reset();
  buffer_.reset();
  chunks_.give_back(tables_);
}

void CommandQueue::begin_value(base::ByteRange range) {
  if (hooks == nullptr) return;
  births_.remove(range);
  births_.add(range);
}

void CommandQueue::finish_values() {
  for (const base::ByteRange birth : births_) hooks->grant(birth.address(), birth.bytes());
  births_.clear();
}

}  // namespace russet::metal
