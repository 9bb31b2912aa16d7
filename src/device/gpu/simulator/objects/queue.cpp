// MTLCommandQueue and MTLCommandBuffer: committed work runs later, on another thread.
#include <fmt/format.h>
#include <russet/error.h>

#include <random>
#include <thread>

#include "device/gpu/simulator/objects/block.h"
#include "device/gpu/simulator/objects/metal.h"

namespace russet::objects {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void lie_around() {
  thread_local std::minstd_rand random{12345};
  const long most = settings().delay.count();
  if (most > 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<unsigned long>(most)));
}

void fail(CommandBuffer& buffer, long code, std::string text) {
  buffer.failure = Held<Error>(make<Error>("NSError", code, std::move(text)));
  release(buffer.failure.get());
}

/// MTLCommandBufferError's words, as macOS has them.
std::string text_of(int code) {
  switch (code) {
    case 2: return "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)";
    case 3: return "Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault)";
    case 4: return "Ignored (for causing prior/excessive GPU errors)";
    case 8: return "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)";
    default: return fmt::format("Internal Error ({:08x})", code);
  }
}

void execute(Timeline& timeline, CommandBuffer& buffer, const Passes& later) {
  buffer.started = now();
  int dispatches = 0;
  if (timeline.failed) {
    fail(buffer, 4, text_of(4));
  } else if (const int code = std::exchange(settings().next_failure, 0)) {
    fail(buffer, code, text_of(code));
  } else {
    try {
      dispatches = run(buffer.passes, later);
    } catch (const russet::Error& error) {
      fail(buffer, 1, error.what());
    }
  }
  const double stated = settings().seconds_per_dispatch * dispatches;
  buffer.ended = stated > 0 ? buffer.started + stated : now();
}

/// Without retained references the maker of the work keeps its resources alive.
void check_alive(const CommandBuffer& buffer) {
  if (buffer.retains) return;
  std::map<Buffer*, int> held;
  for (const auto& pass : buffer.passes) {
    for (const auto& phase : pass->phases) {
      for (const Dispatched& dispatch : phase) {
        for (const Bound& bound : dispatch.buffers) ++held[bound.buffer.get()];
      }
    }
  }
  for (const auto& [resource, count] : held) {
    if (resource->count.load() <= count) {
      report("lifetime", "an MTLBuffer was released while work in flight had it (unretained references)");
    }
  }
}

/// Command buffers of all queues that were committed and are not done with.
std::atomic<int>& committed_anywhere() {
  static std::atomic<int> count{0};
  return count;
}

void complete(Timeline& timeline, CommandBuffer& buffer) {
  check_alive(buffer);
  mark_use(buffer.passes, false);
  buffer.passes.clear();
  if (buffer.failure) timeline.failed = true;
  buffer.status.store(buffer.failure ? CommandBuffer::error : CommandBuffer::completed);
  for (Block* const handler : buffer.handlers) {
    call_block(handler, &buffer);
    release_block(handler);
  }
  buffer.handlers.clear();
  {
    const std::lock_guard lock(timeline.mutex);
    timeline.committed.pop_front();
    --timeline.uncompleted;
    buffer.finished.store(true);
  }
  timeline.changed.notify_all();
  release(&buffer);
  --committed_anywhere();
  committed_anywhere().notify_all();
}

void work(const std::shared_ptr<Timeline>& timeline) {
  while (true) {
    CommandBuffer* buffer = nullptr;
    {
      std::unique_lock lock(timeline->mutex);
      timeline->changed.wait(lock, [&] { return timeline->closed || !timeline->committed.empty(); });
      if (timeline->committed.empty()) return;
      buffer = timeline->committed.front();
    }
    do {
      lie_around();
    } while (timeline->paused.load());
    Passes later;
    {
      const std::lock_guard lock(timeline->mutex);
      for (std::size_t i = 1; i < timeline->committed.size(); ++i) {
        const Passes& passes = timeline->committed[i]->passes;
        later.insert(later.end(), passes.begin(), passes.end());
      }
    }
    execute(*timeline, *buffer, later);
    complete(*timeline, *buffer);
  }
}

Object* make_command_buffer(CommandQueue& queue, bool retains) {
  Timeline& timeline = *queue.timeline;
  {
    std::unique_lock lock(timeline.mutex);
    const auto there_is_room = [&] { return timeline.uncompleted < settings().uncompleted_command_buffers; };
    // Metal would wait for ever.
    if (!there_is_room() && timeline.committed.empty()) {
      throw InternalError(fmt::format(
          "a command queue has {} command buffers that were not committed: no more can be made", timeline.uncompleted));
    }
    timeline.changed.wait(lock, there_is_room);
    ++timeline.uncompleted;
  }
  statistics().command_buffers.fetch_add(1);
  return autoreleased(make<CommandBuffer>("MTLCommandBuffer", queue, retains));
}

void commit(CommandBuffer* buffer, Selector) {
  if (buffer->status.load() != CommandBuffer::not_enqueued)
    return report("api", "a command buffer was committed twice");
  if (buffer->encoding) report("api", "a command buffer was committed before its encoder ended");
  buffer->status.store(CommandBuffer::committed);
  mark_use(buffer->passes, true);
  retain(buffer);
  ++committed_anywhere();
  Timeline& timeline = *buffer->queue->timeline;
  {
    const std::lock_guard lock(timeline.mutex);
    timeline.committed.push_back(buffer);
  }
  timeline.changed.notify_all();
}

void wait_until_completed(CommandBuffer* buffer, Selector) {
  if (buffer->status.load() == CommandBuffer::not_enqueued) {
    throw InternalError("waitUntilCompleted: the command buffer was not committed: this would wait for ever");
  }
  Timeline& timeline = *buffer->queue->timeline;
  std::unique_lock lock(timeline.mutex);
  timeline.changed.wait(lock, [&] { return buffer->finished.load(); });
}

void add_handler(CommandBuffer* buffer, Selector, const Block* block) {
  if (buffer->status.load() != CommandBuffer::not_enqueued) {
    return report("api", "addCompletedHandler: came after the commit");
  }
  buffer->handlers.push_back(copy_block(block));
}

double time_of(CommandBuffer* buffer, double CommandBuffer::*time) {
  if (buffer->status.load() >= CommandBuffer::completed) return buffer->*time;
  report("api", "GPU times were asked for before the command buffer completed");
  return 0;
}

}  // namespace

void drain() {
  for (int count = committed_anywhere(); count > 0; count = committed_anywhere()) committed_anywhere().wait(count);
}

CommandQueue::CommandQueue(Class& isa) : Object(isa) {
  std::thread([timeline = timeline] { work(timeline); }).detach();
}

CommandQueue::~CommandQueue() {
  {
    const std::lock_guard lock(timeline->mutex);
    timeline->closed = true;
  }
  timeline->changed.notify_all();
}

CommandBuffer::~CommandBuffer() {
  if (status.load() != not_enqueued) return;
  // Never committed: its place is free again.
  for (Block* const handler : handlers) release_block(handler);
  {
    const std::lock_guard lock(queue->timeline->mutex);
    --queue->timeline->uncompleted;
  }
  queue->timeline->changed.notify_all();
}

// Since when: API_AVAILABLE in MTLDevice.h, MTLCommandQueue.h and MTLCommandBuffer.h of the macOS SDKs 11.3 and 15.0.
std::vector<Row> queue_rows() {
  return {
      {"MTLDevice",
       "newCommandQueue",
       {10, 11},
       +[](Device*, Selector) -> Object* { return make<CommandQueue>("MTLCommandQueue"); }},
      {"MTLCommandQueue", "addResidencySet:", {15, 0}, +[](CommandQueue*, Selector, Object*) {}},
      {"MTLCommandQueue",
       "commandBuffer",
       {10, 11},
       +[](CommandQueue* queue, Selector) { return make_command_buffer(*queue, true); }},
      {"MTLCommandQueue",
       "commandBufferWithUnretainedReferences",
       {10, 11},
       +[](CommandQueue* queue, Selector) { return make_command_buffer(*queue, false); }},
      {"MTLCommandBuffer", "commit", {10, 11}, &commit},
      {"MTLCommandBuffer", "waitUntilCompleted", {10, 11}, &wait_until_completed},
      {"MTLCommandBuffer", "addCompletedHandler:", {10, 11}, &add_handler},
      {"MTLCommandBuffer", "status", {10, 11}, +[](CommandBuffer* buffer, Selector) { return buffer->status.load(); }},
      {"MTLCommandBuffer",
       "error",
       {10, 11},
       +[](CommandBuffer* buffer, Selector) -> Object* { return buffer->failure.get(); }},
      {"MTLCommandBuffer",
       "GPUStartTime",
       {10, 15},
       +[](CommandBuffer* buffer, Selector) { return time_of(buffer, &CommandBuffer::started); }},
      {"MTLCommandBuffer",
       "GPUEndTime",
       {10, 15},
       +[](CommandBuffer* buffer, Selector) { return time_of(buffer, &CommandBuffer::ended); }},
  };
}

}  // namespace russet::objects
