#pragma once
// Data sets by name, as the command line knows them.
#include <russet/data/dataset.h>
#include <filesystem>
#include <string_view>

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

/// "shapes", "mnist:FOLDER", "folder:FOLDER" or "tensors:FILE". Images are float32 from 0 to 1 until with() gives them
/// other transforms. Throws ValueError for another word, FileError for what cannot be read.
Parts open(std::string_view description);

}  // namespace russet::data
