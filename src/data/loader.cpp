#include <fmt/format.h>
#include <russet/data/loader.h>
#include <russet/error.h>
#include <russet/runtime.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "data/batch_buffer.h"

namespace russet::data {
namespace {

int automatic_workers() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 1, 8); }

void check(const Dataset& dataset, const LoaderOptions& options) {
  if (options.batch < 1)
    throw ValueError(fmt::format("DataLoader: the batch must be at least 1, not {}", options.batch));
  if (options.ahead < 1) throw ValueError(fmt::format("DataLoader: ahead must be at least 1, not {}", options.ahead));
  if (options.workers > 1024) throw ValueError(fmt::format("DataLoader: {} workers are too many", options.workers));
  if (dataset.size() < 1) throw ValueError("DataLoader: the dataset has no samples");
}

std::shared_ptr<const Sampler> sampler_for(const Dataset& dataset, const LoaderOptions& options) {
  if (options.sampler) return options.sampler;
  std::vector<std::int64_t> lengths = options.group_by_length ? dataset.lengths() : std::vector<std::int64_t>{};
  if (!lengths.empty()) {
    return std::make_shared<const LengthGroupedSampler>(std::move(lengths), options.batch, options.seed);
  }
  if (!options.shuffle && !options.group_by_length) return std::make_shared<const SequentialSampler>(dataset.size());
  return std::make_shared<const RandomSampler>(dataset.size(), options.seed);
}

/// A batch while it is prepared.
struct PendingBatch {
  std::unique_ptr<BatchBuffer> buffer;
  std::int64_t unfinished = 0;  // pieces
  std::exception_ptr error;     // of the first sample that failed, in the batch's order
  std::int64_t failed_piece = 0;
};

}  // namespace

/// Threads take pieces of batches in order, each batch in its slot of a ring; the consumer takes whole batches in
/// order. One mutex guards all but the contents of a slot, which belong to their piece's thread until it is finished
/// and to the consumer from then on until it has taken the batch.
class DataLoader::Workers {
 public:
  Workers(DatasetPtr dataset, const LoaderOptions& options) : dataset_(std::move(dataset)), options_(options) {
    check(*dataset_, options_);
    if (options_.workers < 0) options_.workers = automatic_workers();
    options_.sampler = sampler_for(*dataset_, options_);
    if (!options_.collate) options_.collate = dataset_->collate();
    allocate_slots();
    piece_ = std::max<std::int64_t>(1, (options_.batch + options_.workers - 1) / std::max(options_.workers, 1));
  }

  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  const Dataset& dataset() const { return *dataset_; }
  const LoaderOptions& options() const { return options_; }
  const LoaderState& state() const { return state_; }

  std::int64_t batches() const {
    const std::int64_t all = options_.sampler->size();
    return options_.drop_last ? all / options_.batch : (all + options_.batch - 1) / options_.batch;
  }
  std::int64_t samples() const { return std::min(options_.sampler->size(), batches() * options_.batch); }

  void begin() {
    if (running_) finish_epoch();
  }

  void restore(const LoaderState& state) {
    if (state.epoch < 0 || state.position < 0 || state.position > batches()) {
      throw ValueError(
          fmt::format("DataLoader: there is no batch {} in epoch {}: an epoch has {} batches. Was the state "
                      "saved with another data set or batch size?",
                      state.position, state.epoch, batches()));
    }
    halt();
    state_ = state;
  }

  std::optional<Batch> next() {
    flush();  // the device works on the last step while the next batch is made ready
    if (!running_) start_epoch();
    if (state_.position == batches()) {
      finish_epoch();
      return std::nullopt;
    }
    PendingBatch& slot = ready_slot();
    if (slot.error) {
      const std::exception_ptr error = slot.error;
      go_on();
      std::rethrow_exception(error);
    }
    Batch batch = slot.buffer->batch(rows_of(state_.position));
    go_on();
    return batch;
  }

 private:
  struct Piece {
    std::int64_t batch;
    std::int64_t number;
  };

  void allocate_slots() {
    const std::int64_t rows = std::min(options_.batch, options_.sampler->size());
    try {
      slots_.resize(static_cast<std::size_t>(options_.ahead) + 1);
      for (PendingBatch& slot : slots_) slot.buffer = make_batch_buffer(*dataset_, options_, rows);
    } catch (const OutOfMemoryError&) {
      refuse_slots(rows);
    } catch (const Error&) {
      throw;
    } catch (const std::exception&) {
      refuse_slots(rows);
    }
  }

  [[noreturn]] void refuse_slots(std::int64_t rows) const {
    throw OutOfMemoryError(
        fmt::format("DataLoader: no memory for {} batches of {} samples. A smaller batch, or fewer "
                    "batches ahead, take less.",
                    options_.ahead + 1, rows));
  }

  std::int64_t rows_of(std::int64_t batch) const {
    return std::min(options_.batch, options_.sampler->size() - batch * options_.batch);
  }
  std::int64_t pieces_of(std::int64_t batch) const { return (rows_of(batch) + piece_ - 1) / piece_; }
  PendingBatch& slot_of(std::int64_t batch) { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; }

  void start_epoch() {
    std::vector<std::int64_t> order = options_.sampler->order(state_.epoch);
    const std::lock_guard lock(mutex_);
    order_ = std::move(order);
    next_ = {state_.position, 0};
    running_ = true;
    try {
      while (threads_.size() < static_cast<std::size_t>(options_.workers)) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // The system grants no more threads: go on with those there are.
      options_.workers = static_cast<int>(threads_.size());
    }
    work_.notify_all();
  }

  /// The batch that was due is done with.
  void go_on() {
    {
      const std::lock_guard lock(mutex_);
      ++state_.position;
    }
    work_.notify_all();
  }

  /// Stops handing out work and waits for what is under way.
  void halt() {
    std::unique_lock lock(mutex_);
    running_ = false;
    done_.wait(lock, [this] { return busy_ == 0; });
  }

  void finish_epoch() {
    halt();
    ++state_.epoch;
    state_.position = 0;
  }

  bool has_work() const {
    return running_ && next_.batch < batches() &&
           next_.batch < state_.position + static_cast<std::int64_t>(slots_.size());
  }

  /// Takes the next piece of work; the lock is held.
  Piece take() {
    const Piece piece = next_;
    PendingBatch& slot = slot_of(piece.batch);
    if (piece.number == 0) {
      slot.unfinished = pieces_of(piece.batch);
      slot.error = nullptr;
    }
    next_ =
        piece.number + 1 < pieces_of(piece.batch) ? Piece{piece.batch, piece.number + 1} : Piece{piece.batch + 1, 0};
    ++busy_;
    return piece;
  }

  /// Writes the samples of a piece; with the last piece, makes the batch. The lock is held before and after.
  void carry_out(const Piece& piece, std::unique_lock<std::mutex>& lock) {
    PendingBatch& slot = slot_of(piece.batch);
    const auto unlocked = [&](const auto& part) {
      lock.unlock();
      const std::exception_ptr error = error_of(part);
      lock.lock();
      if (!error || (slot.error && piece.number > slot.failed_piece)) return;
      slot.error = error;
      slot.failed_piece = piece.number;
    };
    unlocked([&] { write_rows(piece, *slot.buffer); });
    const bool last = slot.unfinished == 1;
    if (last && !slot.error) unlocked([&] { finish(piece.batch, *slot.buffer); });
    --slot.unfinished;
    --busy_;
    if (slot.unfinished == 0 || busy_ == 0) done_.notify_all();
  }

  template <class Part>
  static std::exception_ptr error_of(const Part& part) {
    try {
      part();
    } catch (const std::bad_alloc&) {
      return std::make_exception_ptr(OutOfMemoryError("DataLoader: no memory to prepare a batch"));
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  void write_rows(const Piece& piece, BatchBuffer& buffer) const {
    const std::int64_t first = piece.number * piece_;
    const std::int64_t last = std::min(first + piece_, rows_of(piece.batch));
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t position = piece.batch * options_.batch + row;
      Random random(options_.seed, Random::Purpose::augmentation, static_cast<std::uint64_t>(state_.epoch),
                    static_cast<std::uint64_t>(position));
      buffer.write(row, order_[static_cast<std::size_t>(position)], random);
    }
  }

  void finish(std::int64_t batch, BatchBuffer& buffer) const {
    Random random(options_.seed, Random::Purpose::mixing, static_cast<std::uint64_t>(state_.epoch),
                  static_cast<std::uint64_t>(batch));
    buffer.finish(rows_of(batch), random);
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [this] { return stopping_ || has_work(); });
      if (stopping_) return;
      carry_out(take(), lock);
    }
  }

  /// Waits for the batch that is due, or prepares it here if there are no workers.
  PendingBatch& ready_slot() {
    std::unique_lock lock(mutex_);
    PendingBatch& slot = slot_of(state_.position);
    while (options_.workers == 0 && next_.batch == state_.position) carry_out(take(), lock);
    done_.wait(lock, [&] { return next_.batch > state_.position && slot.unfinished == 0; });
    return slot;
  }

  DatasetPtr dataset_;
  LoaderOptions options_;
  std::int64_t piece_ = 1;  // rows

  std::mutex mutex_;
  std::condition_variable work_;  // there may be work
  std::condition_variable done_;  // a batch, or all work under way, is finished
  std::vector<std::thread> threads_;
  std::vector<PendingBatch> slots_;
  std::vector<std::int64_t> order_;
  LoaderState state_;
  Piece next_{0, 0};
  std::int64_t busy_ = 0;
  bool running_ = false;
  bool stopping_ = false;
};

std::vector<Tensor> Batch::tensors() const {
  std::vector<Tensor> all{input};
  if (target.defined()) all.push_back(target);
  for (const auto& [name, field] : fields) all.push_back(field);
  return all;
}

DataLoader::DataLoader(DatasetPtr dataset, const LoaderOptions& options)
    : workers_(std::make_unique<Workers>(std::move(dataset), options)) {}
DataLoader::~DataLoader() = default;
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;

DataLoader::Iterator DataLoader::begin() {
  workers_->begin();
  return Iterator(this);
}

std::optional<Batch> DataLoader::next() { return workers_->next(); }
std::int64_t DataLoader::batches() const { return workers_->batches(); }
std::int64_t DataLoader::samples() const { return workers_->samples(); }
const Dataset& DataLoader::dataset() const { return workers_->dataset(); }
const LoaderOptions& DataLoader::options() const { return workers_->options(); }
LoaderState DataLoader::state() const { return workers_->state(); }
void DataLoader::restore(const LoaderState& state) { workers_->restore(state); }

}  // namespace russet::data
