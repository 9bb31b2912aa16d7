#include "device/gpu/cuda/stream_queue.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <algorithm>
#include <utility>

#include "device/gpu/cuda/memory.h"

namespace russet::cuda {
namespace {

/// Of memory for uploads that are under way: pinned memory is the host's, which other programs want too.
constexpr std::size_t most_staged = std::size_t{256} << 20;

CUevent make_event(bool keeps_time) {
  CUevent event = nullptr;
  check(api().event_create(&event, keeps_time ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING), "making an event");
  return event;
}

std::string words_of(CUresult result) { return fmt::format("{} (code {})", text_of(result), static_cast<int>(result)); }

gpu::Chunks::Source pinned_memory(const Context& context) {
  return {[&context](std::size_t bytes) { return allocate_pinned(context, bytes); },
          [&context](std::byte* memory, std::size_t) { release_pinned(context, memory); }};
}

/// What lies before an event of a stream, and after another one if its time is kept.
class Work final : public gpu::Submission {
 public:
  Work(const Context& context, CUevent start, CUevent end, std::string failure)
      : context_(context), start_(start), end_(end), failure_(std::move(failure)) {}
  ~Work() override {
    for (auto& [chunks, tables] : tables_) chunks->give_back(tables);
    if (!context_.try_enter()) return;
    if (start_ != nullptr) api().event_destroy(start_);
    api().event_destroy(end_);
  }

  /// Tables that the work alone reads.
  void keep(gpu::Chunks& chunks, std::vector<gpu::Chunk> tables) { tables_.emplace_back(&chunks, std::move(tables)); }
  /// Memory that it copies from.
  void keep(std::vector<graph::StagingMemory> sources) { sources_ = std::move(sources); }

  bool is_done() const override {
    context_.enter();
    return !failure_.empty() || api().event_query(end_) != CUDA_ERROR_NOT_READY;
  }
  void wait() const override {
    context_.enter();
    if (failure_.empty()) api().event_synchronize(end_);
  }
  double seconds() const override {
    if (start_ == nullptr) return 0;
    float milliseconds = 0;
    check(api().event_elapsed_time(&milliseconds, start_, end_), "timing the GPU");
    return milliseconds * 1e-3;
  }
  std::string failure() const override {
    if (!failure_.empty()) return failure_;
    const CUresult result = api().event_query(end_);
    return result == CUDA_SUCCESS ? "" : words_of(result);
  }

 private:
  const Context& context_;
  CUevent start_;  // nullptr: its time is not kept
  CUevent end_;
  std::string failure_;  // of encoding
  std::vector<std::pair<gpu::Chunks*, std::vector<gpu::Chunk>>> tables_;
  std::vector<graph::StagingMemory> sources_;
};

}  // namespace

StreamQueue::StreamQueue(const Context& context, gpu::MemoryBlocks& blocks)
    : context_(context),
      blocks_(blocks),
      pinned_(pinned_memory(context)),
      memory_(gpu::pieces_of(blocks)),
      staging_(pinned_memory(context), most_staged),
      graphs_(context, blocks) {
  context_.enter();
  check(api().stream_create(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
}

StreamQueue::~StreamQueue() {
  if (context_.try_enter()) api().stream_destroy(stream_);
}

void StreamQueue::note(CUresult result) {
  if (result != CUDA_SUCCESS && failure_.empty()) failure_ = words_of(result);
}

bool StreamQueue::upload(std::byte* target, std::span<const std::byte> source) {
  if (staging_.bytes_in_use() + source.size() > most_staged) return false;
  std::byte* staged = nullptr;
  try {
    staged = staging_.take(source.size(), staged_);
  } catch (const OutOfMemoryError&) {
    return false;
  }
  std::ranges::copy(source, staged);
  uploads_.push_back({target, staged, source.size()});
  return true;
}

void StreamQueue::upload_staged(std::byte* target, const graph::StagingMemory& source, std::size_t bytes) {
  uploads_.push_back({target, source.get(), bytes});
  sources_.push_back(source);
}

bool StreamQueue::clear(std::byte* target, std::size_t bytes) {
  uploads_.push_back({target, nullptr, bytes});
  return true;
}

void StreamQueue::begin() {
  launches_.clear();
  repeated_.reset();
}

void StreamQueue::encode(const gpu::Launch& launch) {
  if (repeated_) {
    launches_ = *std::exchange(repeated_, nullptr);
    launches_.set_changing(repeated_changing_);
  }
  launches_.add(launch, blocks_);
}

std::shared_ptr<const gpu::Encoded> StreamQueue::encoded() const {
  return repeated_ ? repeated_ : std::make_shared<const LaunchList>(launches_);
}

void StreamQueue::repeat(std::shared_ptr<const gpu::Encoded> encoded, std::span<const std::uint64_t> arguments) {
  repeated_ = std::static_pointer_cast<const LaunchList>(std::move(encoded));
  repeated_changing_.assign(repeated_->changing().begin(), repeated_->changing().end());
  if (repeated_->takes_other_arguments()) repeated_->put_arguments(arguments, repeated_changing_);
}

void StreamQueue::drop() {
  begin();
  uploads_.clear();
  sources_.clear();
  staging_.give_back(staged_);
}

std::unique_ptr<gpu::Submission> StreamQueue::submit() {
  context_.enter();
  const CUevent began = keeps_times_ ? make_event(true) : nullptr;
  const CUevent ended = make_event(keeps_times_);
  std::vector<gpu::Chunk> pinned;
  std::vector<gpu::Chunk> memory;
  if (began != nullptr) note(api().event_record(began, stream_));
  for (const Upload& upload : uploads_) copy(upload);
  if (failure_.empty()) start(pinned, memory);
  note(api().event_record(ended, stream_));
  auto work = std::make_unique<Work>(context_, began, ended, failure_);
  work->keep(pinned_, std::move(pinned));
  work->keep(memory_, std::move(memory));
  work->keep(staging_, std::exchange(staged_, {}));
  work->keep(std::exchange(sources_, {}));
  uploads_.clear();
  return work;
}

void StreamQueue::start(std::vector<gpu::Chunk>& pinned, std::vector<gpu::Chunk>& memory) {
  if (Graph* const graph = graphs_.find(launches(), changing(), stream_)) {
    if (!graph->holds(changing())) {
      send(graph->changing(), pinned);
      graph->note_sent(changing());
    }
    return note(graph->launch(stream_));
  }
  std::byte* target = nullptr;
  if (!changing().empty()) {
    target = memory_.take(changing().size(), memory);
    send(target, pinned);
  }
  start_one_by_one(target);
}

void StreamQueue::start_one_by_one(const std::byte* changing) {
  try {
    for (std::size_t i = 0; i < launches().items().size(); ++i) {
      const LaunchList::Item& item = launches().items()[i];
      std::vector<void*> arguments = launches().arguments_of(i, changing);
      item.pipeline->start(item.grid, arguments, stream_);
    }
  } catch (const DeviceError& error) {
    if (failure_.empty()) failure_ = error.what();
  }
}

void StreamQueue::send(std::byte* target, std::vector<gpu::Chunk>& pinned) {
  std::byte* const source = pinned_.take(changing().size(), pinned);
  std::ranges::copy(changing(), source);
  copy({target, source, changing().size()});
}

void StreamQueue::copy(const Upload& upload) {
  const CUdeviceptr target = device_address(upload.target);
  note(upload.source == nullptr ? api().memset_async(target, 0, upload.bytes, stream_)
                                : api().memcpy_to_device_async(target, upload.source, upload.bytes, stream_));
}

void StreamQueue::restart(const std::string& reason) { give_up(reason); }

}  // namespace russet::cuda
