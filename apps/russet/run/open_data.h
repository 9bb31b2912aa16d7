#pragma once
// Data sets by name.
#include <russet/data/parts.h>

#include <string_view>

namespace russet::app {

/// "shapes", "mnist:FOLDER", "cifar10:FOLDER", "folder:FOLDER" or "tensors:FILE". Images are float32 from 0 to 1 until
/// with() gives them other transforms. Throws ValueError for another word, FileError for what cannot be read.
data::Parts open_data(std::string_view description);

}  // namespace russet::app
