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

}  // namespace russet::data
