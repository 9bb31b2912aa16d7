// MTLComputeCommandEncoder, and the execution of what encoders recorded.
#include <fmt/format.h>

#include <random>

#include "device/gpu/simulator/objects/metal.h"

namespace russet::objects {
namespace {

constexpr unsigned long barrier_buffers = 1;  // MTLBarrierScopeBuffers
constexpr unsigned long dispatch_concurrent = 1;

/// Whether the encoder may still be written to.
bool open(const Encoder& encoder, const char* message) {
  if (encoder.ended) report("api", fmt::format("{} came after endEncoding", message));
  return !encoder.ended;
}

Object* new_encoder(CommandBuffer* buffer, Selector, unsigned long type) {
  if (buffer->encoding) report("api", "a command buffer got a second encoder before the first one ended");
  if (buffer->status.load() != CommandBuffer::not_enqueued) report("api", "an encoder was made after the commit");
  statistics().encoders.fetch_add(1);
  return autoreleased(make<Encoder>("MTLComputeCommandEncoder", *buffer, type == dispatch_concurrent));
}

void end_encoding(Encoder* encoder, Selector) {
  if (!open(*encoder, "endEncoding")) return;
  encoder->ended = true;
  encoder->buffer->encoding = false;
  encoder->buffer->passes.push_back(encoder->pass);
}

void set_pipeline(Encoder* encoder, Selector, PipelineState* state) {
  if (open(*encoder, "setComputePipelineState:")) encoder->pipeline = Held<PipelineState>(state);
}

void set_buffer(Encoder* encoder, Selector, Buffer* buffer, unsigned long offset, unsigned long index) {
  if (!open(*encoder, "setBuffer:offset:atIndex:")) return;
  if (index >= binding_count) return report("binding", fmt::format("there is no binding {}", index));
  if (buffer == nullptr || offset >= buffer->length) {
    return report("binding", fmt::format("binding {} starts at byte {} of a buffer of {} bytes", index, offset,
                                         buffer == nullptr ? 0 : buffer->length));
  }
  encoder->bound[index] = {Held<Buffer>(buffer), offset, buffer->length - offset};
  if (encoder->values_index == index) encoder->values_index.reset();
}

void set_bytes(Encoder* encoder, Selector, const std::byte* bytes, unsigned long length, unsigned long index) {
  if (!open(*encoder, "setBytes:length:atIndex:")) return;
  if (length == 0 || length > inline_limit) {
    return report("binding", fmt::format("setBytes: takes 1 to {} bytes, not {}", inline_limit, length));
  }
  if (index >= binding_count) return report("binding", fmt::format("there is no binding {}", index));
  encoder->values.assign(bytes, bytes + length);
  encoder->values_index = index;
  encoder->bound[index] = {};
}

void barrier(Encoder* encoder, Selector, unsigned long scope) {
  if (!open(*encoder, "memoryBarrierWithScope:")) return;
  if (statistics().barriers.fetch_add(1) == settings().lost_barrier) return;
  if ((scope & barrier_buffers) == 0) return;  // orders nothing that russet uses
  if (!encoder->pass->phases.back().empty()) encoder->pass->phases.emplace_back();
}

void wait_for_fence(Encoder* encoder, Selector, Fence* fence) {
  if (open(*encoder, "waitForFence:") && !settings().lost_fences) encoder->pass->waits.emplace_back(fence);
}

void update_fence(Encoder* encoder, Selector, Fence* fence) {
  if (open(*encoder, "updateFence:")) encoder->pass->updates.emplace_back(fence);
}

/// What the simulated GPU does not judge itself.
bool fits(const Encoder& encoder, const Size& groups, const Size& threads) {
  const auto refuse = [&](std::string text) {
    report("launch", fmt::format("{}: {}", encoder.pipeline->function->name, text));
    return false;
  };
  const unsigned long size = threads.width * threads.height * threads.depth;
  if (threads.height != 1 || threads.depth != 1 || size == 0 || size % 32 != 0) {
    return refuse(fmt::format("a threadgroup of {} x {} x {} threads is not a row of whole simdgroups", threads.width,
                              threads.height, threads.depth));
  }
  if (size > encoder.pipeline->threads) {
    return refuse(fmt::format("a threadgroup of {} threads; the pipeline allows {}", size, encoder.pipeline->threads));
  }
  if (std::max({groups.width, groups.height, groups.depth}) > UINT32_MAX) return refuse("a grid beyond 32 bits");
  return true;
}

/// Reports it if the tensor ends behind its buffer.
void check_end(const Encoder& encoder, const Bound& bound, std::size_t index) {
  if (bound.offset + bound.bytes <= bound.buffer->length) return;
  report("binding",
         fmt::format("{}: the tensor at {} ends {} bytes behind its buffer", encoder.pipeline->function->name, index,
                     bound.offset + bound.bytes - bound.buffer->length));
}

/// The bindings of the next dispatch: those that were announced for it, or else all there are before the inline bytes.
std::vector<Bound> take_bindings(Encoder& encoder) {
  std::size_t planned = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < binding_count; ++i) {
    if (encoder.bound[i].planned) planned = i + 1;
    if (encoder.bound[i].buffer) count = i + 1;
  }
  if (planned > 0) {
    count = planned;
  } else if (encoder.values_index) {
    count = std::min(count, *encoder.values_index);
  }
  std::vector<Bound> result;
  for (std::size_t i = 0; i < count; ++i) {
    Bound& bound = encoder.bound[i];
    if (!bound.buffer) {
      report("binding", fmt::format("{}: nothing is bound at {}", encoder.pipeline->function->name, i));
    } else {
      check_end(encoder, bound, i);
    }
    result.push_back(bound);
    bound.planned = false;
  }
  return result;
}

/// What a dispatch reaches through a table: the bases are what is bound before the table.
void take_reached(Encoder& encoder, Dispatched& work) {
  work.reached = std::exchange(encoder.reached, {});
  work.buffers = std::exchange(encoder.reached_buffers, {});
  for (std::size_t i = 0; i < encoder.table_index; ++i) {
    if (!encoder.bound[i].buffer) {
      report("binding", fmt::format("{}: nothing is bound at {}", encoder.pipeline->function->name, i));
      return;
    }
    work.bases.push_back(encoder.bound[i].buffer);
  }
  for (std::size_t i = 0; i < work.buffers.size(); ++i) {
    work.buffers[i].buffer = work.bases.at(work.reached[i].base);
    check_end(encoder, work.buffers[i], i);
  }
  if (encoder.values_index == encoder.table_index) {
    work.values = encoder.values;
  } else if (encoder.bound[encoder.table_index].buffer) {
    work.table = encoder.bound[encoder.table_index];
    check_end(encoder, *work.table, encoder.table_index);
    encoder.bound[encoder.table_index].planned = false;
  } else {
    report("binding", fmt::format("{}: no table is bound", encoder.pipeline->function->name));
  }
}

void dispatch(Encoder* encoder, Selector, Size groups, Size threads) {
  if (!open(*encoder, "dispatchThreadgroups:threadsPerThreadgroup:")) return;
  if (!encoder->pipeline) return report("launch", "a dispatch without a pipeline");
  if (!fits(*encoder, groups, threads)) return;
  statistics().dispatches.fetch_add(1);
  Dispatched work;
  work.pipeline = encoder->pipeline;
  const bool through_table = !encoder->reached.empty();
  if (through_table) {
    take_reached(*encoder, work);
  } else {
    work.buffers = take_bindings(*encoder);
  }
  if (!through_table && encoder->values_index && *encoder->values_index >= work.buffers.size()) {
    if (*encoder->values_index != work.buffers.size()) {
      report("binding", fmt::format("{}: inline bytes at {} behind {} buffers", encoder->pipeline->function->name,
                                    *encoder->values_index, work.buffers.size()));
    }
    work.values = encoder->values;
  }
  work.births = std::exchange(encoder->births, {});
  work.groups = {static_cast<std::uint32_t>(groups.width), static_cast<std::uint32_t>(groups.height),
                 static_cast<std::uint32_t>(groups.depth)};
  work.threads = static_cast<std::uint32_t>(threads.width);
  if (!encoder->concurrent && !encoder->pass->phases.back().empty()) encoder->pass->phases.emplace_back();
  encoder->pass->phases.back().push_back(std::move(work));
}

void for_each_binding(const Pass& pass, auto&& visit) {
  for (const auto& phase : pass.phases) {
    for (const Dispatched& dispatch : phase) {
      for (const Bound& bound : dispatch.buffers) {
        if (bound.buffer) visit(dispatch, bound);
      }
      if (dispatch.table) visit(dispatch, *dispatch.table);
    }
  }
}

/// The bytes that a pass touches, merged: (buffer, writes) to ranges.
using Ranges = std::map<std::pair<Buffer*, bool>, std::map<std::size_t, std::size_t>>;

Ranges ranges_of(const Passes& passes) {
  Ranges result;
  for (const auto& pass : passes) {
    for_each_binding(*pass, [&](const Dispatched&, const Bound& bound) {
      std::size_t& end = result[{bound.buffer.get(), bound.writes}][bound.offset];
      end = std::max(end, bound.offset + bound.bytes);
    });
  }
  return result;
}

/// Whether Metal lets `second` start only after `first` is done: they share a resource that one of them writes, or a
/// fence. Memory that two buffers share is not seen.
bool ordered(const Pass& first, const Pass& second) {
  for (const auto& fence : second.waits) {
    for (const auto& update : first.updates) {
      if (fence.get() == update.get()) return true;
    }
  }
  std::map<Buffer*, bool> written;
  for_each_binding(first, [&](const Dispatched&, const Bound& bound) { written[bound.buffer.get()] |= bound.writes; });
  bool shared = false;
  for_each_binding(second, [&](const Dispatched&, const Bound& bound) {
    const auto found = written.find(bound.buffer.get());
    shared |= found != written.end() && (found->second || bound.writes);
  });
  return shared;
}

/// Reports two dispatches that touch the same bytes although nothing orders their encoders.
void check_conflict(const Pass& first, const Pass& second) {
  bool found = false;
  for_each_binding(first, [&](const Dispatched& one, const Bound& a) {
    for_each_binding(second, [&](const Dispatched& other, const Bound& b) {
      const std::byte* const begin = a.buffer->gpu + a.offset;
      const std::byte* const other_begin = b.buffer->gpu + b.offset;
      const bool overlap = begin < other_begin + b.bytes && other_begin < begin + a.bytes;
      if (found || !overlap || !(a.writes || b.writes)) return;
      found = true;
      report("race", fmt::format("{} and {} touch the same bytes, and nothing orders their encoders",
                                 one.pipeline->function->name, other.pipeline->function->name));
    });
  });
}

/// The order of the passes: each pair that nothing orders may be turned round, and is checked.
std::vector<std::size_t> order_of(const Passes& passes) {
  const std::size_t count = passes.size();
  std::vector<std::vector<bool>> after(count, std::vector<bool>(count));
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t i = j; i-- > 0;) {
      if (after[j][i] || !ordered(*passes[i], *passes[j])) continue;
      after[j][i] = true;
      for (std::size_t k = 0; k < i; ++k) after[j][k] = after[j][k] || after[i][k];
    }
    for (std::size_t i = 0; i < j; ++i) {
      if (!after[j][i]) check_conflict(*passes[i], *passes[j]);
    }
  }
  thread_local std::minstd_rand random{54321};
  std::vector<std::size_t> order;
  std::vector<bool> done(count);
  while (order.size() < count) {
    std::vector<std::size_t> ready;
    for (std::size_t j = 0; j < count; ++j) {
      bool free = !done[j];
      for (std::size_t i = 0; i < j; ++i) free = free && (done[i] || !after[j][i]);
      if (free) ready.push_back(j);
    }
    order.push_back(ready[random() % ready.size()]);
    done[order.back()] = true;
  }
  return order;
}

/// For reports. Which tensor it is only the plan knows; where it lies tells two of them apart.
std::string name_of(const Bound& bound) {
  return fmt::format("at byte {} of an MTLBuffer of {} bytes", bound.offset, bound.buffer->length);
}

int run(const Pass& pass) {
  int dispatches = 0;
  for (const auto& phase : pass.phases) {
    std::vector<simulator::Dispatch> work;
    std::deque<std::string> names;
    // A barrier stands between those who used the memory before and those who do now.
    for (const Dispatched& dispatched : phase) {
      for (const Birth& birth : dispatched.births) simulator::mark_uninitialised(birth.begin, birth.bytes);
    }
    for (const Dispatched& dispatched : phase) {
      simulator::Dispatch& dispatch = work.emplace_back();
      dispatch.kernel = dispatched.pipeline->function->kernel;
      dispatch.groups = dispatched.groups;
      dispatch.threads = dispatched.threads;
      dispatch.values = dispatched.values;
      dispatch.reached = dispatched.reached;
      for (const Held<Buffer>& base : dispatched.bases) dispatch.bases.push_back(base->gpu);
      if (dispatched.table) {
        const std::byte* const table = dispatched.table->buffer->gpu + dispatched.table->offset;
        dispatch.values.assign(table, table + dispatched.table->bytes);
      }
      for (const Bound& bound : dispatched.buffers) {
        simulator::BoundMemory& range = dispatch.buffers.emplace_back();
        range.writable = bound.writes;
        if (!bound.buffer) continue;
        range.begin = bound.buffer->gpu + bound.offset;
        range.bytes = bound.bytes;
        if (simulator::options().checked) range.name = names.emplace_back(name_of(bound));
      }
    }
    dispatches += static_cast<int>(work.size());
    if (!work.empty()) simulator::execute(work);
  }
  return dispatches;
}

}  // namespace

Encoder::Encoder(Class& isa, CommandBuffer& buffer, bool concurrent)
    : Object(isa), buffer(&buffer), pass(std::make_shared<Pass>()), concurrent(concurrent) {
  buffer.encoding = true;
  pass->phases.emplace_back();
}

Encoder::~Encoder() {
  if (!ended) report("api", "an encoder was deallocated without endEncoding");
}

int run(const Passes& passes, const Passes& later) {
  if (simulator::options().checked) {
    for (const auto& next : later) {
      for (const auto& pass : passes) {
        if (!ordered(*pass, *next)) check_conflict(*pass, *next);
      }
    }
  }
  int dispatches = 0;
  for (const std::size_t i : order_of(passes)) dispatches += run(*passes[i]);
  return dispatches;
}

void mark_use(const Passes& passes, bool begins) {
  for (const auto& [key, ranges] : ranges_of(passes)) {
    const auto& [buffer, writes] = key;
    for (const auto& [begin, end] : ranges) {
      if (begins) {
        buffer->begin_use(begin, end, writes);
      } else {
        buffer->end_use(begin, end, writes);
      }
    }
  }
}

// Since when: API_AVAILABLE in MTLCommandBuffer.h, MTLCommandEncoder.h and MTLComputeCommandEncoder.h of the macOS SDKs
// 11.3 and 15.0.
std::vector<Row> encoder_rows() {
  return {
      {"MTLCommandBuffer", "computeCommandEncoderWithDispatchType:", {10, 14}, &new_encoder},
      {"MTLComputeCommandEncoder", "endEncoding", {10, 11}, &end_encoding},
      {"MTLComputeCommandEncoder", "setComputePipelineState:", {10, 11}, &set_pipeline},
      {"MTLComputeCommandEncoder", "setBuffer:offset:atIndex:", {10, 11}, &set_buffer},
      {"MTLComputeCommandEncoder", "setBytes:length:atIndex:", {10, 11}, &set_bytes},
      {"MTLComputeCommandEncoder", "memoryBarrierWithScope:", {10, 14}, &barrier},
      {"MTLComputeCommandEncoder", "waitForFence:", {10, 13}, &wait_for_fence},
      {"MTLComputeCommandEncoder", "updateFence:", {10, 13}, &update_fence},
      {"MTLComputeCommandEncoder", "dispatchThreadgroups:threadsPerThreadgroup:", {10, 11}, &dispatch},
  };
}

}  // namespace russet::objects
