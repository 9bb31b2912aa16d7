#include <fmt/format.h>
#include <fmt/ranges.h>
#include <russet/data/images.h>
#include <russet/data/parts.h>
#include <russet/error.h>

#include <algorithm>
#include <numeric>
#include <optional>

namespace russet::data {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The file of that name, plain or gzipped, if there is one.
std::optional<fs::path> plain_or_gzipped(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  for (const char* ending : {"", ".gz"}) {
    const fs::path path = folder / (name + ending);
    if (fs::is_regular_file(path, ignored)) return path;
  }
  return std::nullopt;
}

DatasetPtr mnist_part(const fs::path& folder, const std::string& part) {
  const auto images = plain_or_gzipped(folder, part + "-images-idx3-ubyte");
  const auto labels = plain_or_gzipped(folder, part + "-labels-idx1-ubyte");
  if (!images && !labels) return nullptr;
  if (!images || !labels) {
    throw FileError(fmt::format("{}: of {}'s files, {} is missing", folder.string(), part,
                                images ? part + "-labels-idx1-ubyte(.gz)" : part + "-images-idx3-ubyte(.gz)"));
  }
  return std::make_shared<const Mnist>(*images, *labels);
}

/// data_batch_1.bin to data_batch_5.bin, or nothing if there is none of them.
std::vector<fs::path> cifar10_batches(const fs::path& folder) {
  std::vector<fs::path> found;
  std::vector<std::string> missing;
  for (int number = 1; number <= 5; ++number) {
    const fs::path path = folder / fmt::format("data_batch_{}.bin", number);
    std::error_code ignored;
    if (fs::exists(path, ignored)) {
      found.push_back(path);
    } else {
      missing.push_back(path.filename().string());
    }
  }
  if (!found.empty() && !missing.empty()) {
    throw FileError(
        fmt::format("{}: of CIFAR-10's files, {} is missing", folder.string(), fmt::join(missing, " and ")));
  }
  return found;
}

/// The samples of an image folder, the first of each class, then the second of each, and so on.
std::vector<std::int64_t> by_turns(const ImageFolder& folder) {
  std::vector<std::int64_t> seen(static_cast<std::size_t>(folder.classes()), 0);
  std::vector<std::pair<std::int64_t, std::int64_t>> places;  // place in its class, sample
  for (std::int64_t i = 0; i < folder.size(); ++i) {
    places.emplace_back(seen[static_cast<std::size_t>(folder.label(i))]++, i);
  }
  std::sort(places.begin(), places.end());
  std::vector<std::int64_t> order;
  order.reserve(places.size());
  for (const auto& [place, sample] : places) order.push_back(sample);
  return order;
}

}  // namespace

Parts open_folder(const fs::path& root, int channels) {
  if (!is_folder(root)) throw FileError(fmt::format("{}: there is no such folder", root.string()));
  FolderOptions options{.channels = channels};
  if (!is_folder(root / "train")) {
    return {std::make_shared<const ImageFolder>(root, Transforms{ToFloat{}}, options), nullptr};
  }
  Parts parts;
  parts.train = std::make_shared<const ImageFolder>(root / "train", Transforms{ToFloat{}}, options);
  if (!is_folder(root / "test")) return parts;
  options.classes = parts.train->class_names();
  parts.test = std::make_shared<const ImageFolder>(root / "test", Transforms{ToFloat{}}, options);
  return parts;
}

Parts open_mnist(const fs::path& folder) {
  if (!is_folder(folder)) throw FileError(fmt::format("{}: there is no such folder", folder.string()));
  Parts parts{mnist_part(folder, "train"), mnist_part(folder, "t10k")};
  if (!parts.train) std::swap(parts.train, parts.test);
  if (!parts.train) {
    throw FileError(
        fmt::format("{}: there are no MNIST files (train-images-idx3-ubyte, train-labels-idx1-ubyte, or "
                    "the same with t10k; plain or .gz)",
                    folder.string()));
  }
  return parts;
}

Parts open_cifar10(const fs::path& folder) {
  if (!is_folder(folder)) throw FileError(fmt::format("{}: there is no such folder", folder.string()));
  const fs::path unpacked = folder / "cifar-10-batches-bin";
  const fs::path place = is_folder(unpacked) ? unpacked : folder;
  const fs::path test = place / "test_batch.bin";
  const std::vector<fs::path> batches = cifar10_batches(place);
  std::error_code ignored;
  const bool has_test = fs::exists(test, ignored);
  if (batches.empty() && !has_test) {
    if (is_folder(folder / "train")) return open_folder(folder);
    throw FileError(
        fmt::format("{}: there are neither CIFAR-10's files (data_batch_1.bin to data_batch_5.bin, test_batch.bin) nor "
                    "train/ and test/ with a folder of JPEG or PNG files for each class",
                    folder.string()));
  }
  Parts parts;
  if (!batches.empty()) parts.train = std::make_shared<const Cifar10>(batches);
  if (has_test) parts.test = std::make_shared<const Cifar10>(std::vector<fs::path>{test});
  if (!parts.train) std::swap(parts.train, parts.test);
  return parts;
}

DatasetPtr first_samples(const DatasetPtr& dataset, std::int64_t count) {
  if (count < 1) throw ValueError(fmt::format("first_samples: {} samples are asked for", count));
  const std::int64_t kept = std::min(count, dataset->size());
  if (kept == dataset->size()) return dataset;
  std::vector<std::int64_t> order;
  if (const auto* folder = dynamic_cast<const ImageFolder*>(dataset.get())) {
    order = by_turns(*folder);
    order.resize(static_cast<std::size_t>(kept));
  } else {
    order.resize(static_cast<std::size_t>(kept));
    std::iota(order.begin(), order.end(), std::int64_t{0});
  }
  return std::make_shared<const Subset>(dataset, std::move(order));
}

}  // namespace russet::data
