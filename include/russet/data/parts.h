#pragma once
// Data sets that come in two parts, to train and to test on.
#include <russet/data/dataset.h>
#include <filesystem>

namespace russet::data {

/// A data set with its parts; `test` is null where there is one part only (split() makes two).
struct Parts {
  DatasetPtr train;
  DatasetPtr test;
};

/// root/train/CLASS and root/test/CLASS, or root/CLASS. Both parts number the classes as train does. Throws FileError.
Parts open_folder(const std::filesystem::path& root, int channels = 3);

/// MNIST's four files, or the pair for training or for testing alone (then it is `train`), plain or gzipped.
/// Throws FileError.
Parts open_mnist(const std::filesystem::path& folder);

/// CIFAR-10: data_batch_1.bin to data_batch_5.bin and, for the test part, test_batch.bin, in the folder or in its
/// cifar-10-batches-bin; or image files in a tree, as open_folder takes them. Throws FileError.
Parts open_cifar10(const std::filesystem::path& folder);

/// The first `count` samples of a set, or all if there are fewer. Of an ImageFolder, which is sorted by class: the
/// first of each class in turn. Throws ValueError for a count below 1.
DatasetPtr first_samples(const DatasetPtr& dataset, std::int64_t count);

}  // namespace russet::data
