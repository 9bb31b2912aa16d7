#pragma once
// Files as torch.save writes them, good and bad, made without PyTorch.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "files/bytes.h"

namespace russet::files {

// Parts of a pickle of protocol 2.
std::string pickled(std::string_view text);
std::string pickled(std::int64_t number);
std::string pickled(const std::vector<std::int64_t>& numbers);  // a tuple
inline constexpr std::string_view pickle_start = "\x80\x02";

/// A view of data/KEY. What a test damages differs from the defaults.
struct PickledTensor {
  std::string key = "0";
  std::int64_t count = 6;  // of the storage's elements
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes{2, 3};
  std::vector<std::int64_t> strides{3, 1};
  std::string storage = "torch\nFloatStorage";  // module and name
};
std::string pickled(const PickledTensor& tensor);

/// A whole pickle: a dict of tensors.
std::string pickled_dict(const std::vector<std::pair<std::string, PickledTensor>>& tensors);

/// A zip archive of entries that are stored, not compressed.
Bytes zip_archive(const std::vector<std::pair<std::string, Bytes>>& entries);

/// The archive of a pickle and its storages by key.
Bytes torch_archive(const std::string& pickle, const std::map<std::string, Bytes>& storages);

/// The pickles in front of the value in a file as before PyTorch 1.6.
std::string stream_header(std::int64_t version = 1001, bool little_endian = true);
/// Such a file, with storages of float32.
Bytes torch_stream(const std::string& pickle, const std::map<std::string, Bytes>& storages,
                   const std::string& header = stream_header());

}  // namespace russet::files
