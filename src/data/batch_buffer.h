#pragma once
// BatchBuffer: where the loader's threads prepare a batch. Its memory is used again for later ones.
#include <russet/data/loader.h>

#include <memory>

namespace russet::data {

class BatchBuffer {
 public:
  BatchBuffer() = default;
  virtual ~BatchBuffer() = default;
  BatchBuffer(const BatchBuffer&) = delete;
  BatchBuffer& operator=(const BatchBuffer&) = delete;

  /// Puts a sample of the data set at `row`. Several threads may write different rows at once.
  virtual void write(std::int64_t row, std::int64_t index, Random& random) = 0;
  /// After the first `rows` rows were written. `random` is the batch's.
  virtual void finish(std::int64_t rows, Random& random) = 0;
  /// What finish() made, on the loader's device. The buffer may be written again afterwards.
  virtual Batch batch(std::int64_t rows) = 0;
};

/// For at most `rows` samples of `dataset`, which must outlive it, collated and mixed as the options say; without a
/// collate function inputs and targets are stacked. Throws ValueError for samples that cannot be mixed.
std::unique_ptr<BatchBuffer> make_batch_buffer(const Dataset& dataset, const LoaderOptions& options, std::int64_t rows);

}  // namespace russet::data
