#include <fmt/format.h>
#include <russet/data/images.h>
#include <russet/data/parts.h>
#include <russet/error.h>

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

}  // namespace russet::data
