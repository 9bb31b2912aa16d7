#pragma once
// DataLoader: batches of a dataset, prepared by threads, in an order that does not depend on them.
#include <russet/data/dataset.h>
#include <russet/data/sampler.h>
#include <russet/tensor.h>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace russet::data {

/// [rows, ...input] and [rows, ...target], which `auto [input, target]` names; what a collate function made besides is
/// in `fields`.
struct Batch {
  Tensor input;
  Tensor target;
  std::map<std::string, Tensor, std::less<>> fields{};

  template <std::size_t place>
  Tensor& get() {
    static_assert(place < 2);
    return place == 0 ? input : target;
  }
  template <std::size_t place>
  const Tensor& get() const {
    static_assert(place < 2);
    return place == 0 ? input : target;
  }
  /// All that are defined: what a CapturedFunction of a batch takes.
  std::vector<Tensor> tensors() const;
};

/// MixUp (Zhang et al. 2017) and CutMix (Yun et al. 2019), as torchvision's transforms.v2 have them: each sample of a
/// batch is mixed with the one before it, so shuffle. Targets become shares of classes, float32 [rows, classes].
struct Mixing {
  /// Of Beta(alpha, alpha), by which a batch's share is drawn; 0: none. With both, each batch is mixed by one of them,
  /// by a fair coin.
  double mixup_alpha = 0;
  double cutmix_alpha = 0;
  /// 0: as many as the data set has.
  std::int64_t classes = 0;
  explicit operator bool() const { return mixup_alpha > 0 || cutmix_alpha > 0; }
};

struct LoaderOptions {
  std::int64_t batch = 1;
  bool shuffle = false;
  /// Leaves out the last batch of an epoch if it is not full.
  bool drop_last = false;
  /// Of the order and of the transforms.
  std::uint64_t seed = 0;
  /// Threads that prepare batches; 0: the calling one; negative: chosen by the number of cores.
  int workers = -1;
  /// Batches that are prepared ahead, at least 1.
  int ahead = 2;
  Device device{};
  /// Replaces `shuffle` and `group_by_length`.
  std::shared_ptr<const Sampler> sampler{};
  /// Shuffles so that samples of a batch are of similar length (Dataset::lengths).
  bool group_by_length = false;
  /// Replaces the data set's own. Its fields `input` and `target` become those of the batch.
  Collate collate{};
  /// For inputs of type float32 with a class each, and no collate function.
  Mixing mixing{};
};

/// Where a loader stands: `position` batches of epoch `epoch` have been handed out.
struct LoaderState {
  std::int64_t epoch = 0;
  std::int64_t position = 0;
  bool operator==(const LoaderState&) const = default;
};

/// `for (auto [image, label] : loader)` runs through one epoch; the next loop, through the next. A loop that was left
/// early counts as done: the next one starts the next epoch, unless restore() was called meanwhile.
///
/// Which samples a batch holds, and how they were augmented and mixed, depends on (seed, epoch, position) only. Without
/// a collate function samples are written straight into a batch's buffer, which is used again; from there they are
/// copied once, into the tensor. What a worker throws (FileError with the file's name, for one) is thrown when its
/// batch is asked for; the next call of next() goes on behind that batch.
class DataLoader {
 public:
  /// Throws ValueError for options out of range and for a dataset without samples.
  DataLoader(DatasetPtr dataset, const LoaderOptions& options);
  template <std::derived_from<Dataset> Set>
  DataLoader(Set dataset, const LoaderOptions& options)
      : DataLoader(DatasetPtr(std::make_shared<const Set>(std::move(dataset))), options) {}
  ~DataLoader();
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;

    explicit Iterator(DataLoader* loader) : loader_(loader) { ++*this; }
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return &*batch_; }
    Iterator& operator++() {
      batch_.reset();
      batch_ = loader_->next();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    DataLoader* loader_;
    std::optional<Batch> batch_;
  };

  /// Starts an epoch, or continues the one that restore() set.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }
  /// The next batch of the epoch, or nothing at its end (asked again, the next epoch begins).
  std::optional<Batch> next();

  /// Batches in an epoch, and samples in them.
  std::int64_t batches() const;
  std::int64_t samples() const;
  const Dataset& dataset() const;
  const LoaderOptions& options() const;

  /// After a batch was handed out, this is where to go on behind it.
  LoaderState state() const;
  /// Goes to a state of a loader with the same dataset and options. Throws ValueError if there is no such place.
  void restore(const LoaderState& state);

 private:
  class Workers;
  std::unique_ptr<Workers> workers_;
};

}  // namespace russet::data

template <>
struct std::tuple_size<russet::data::Batch> : std::integral_constant<std::size_t, 2> {};
template <std::size_t place>
struct std::tuple_element<place, russet::data::Batch> {
  using type = russet::Tensor;
};
