#include <fmt/format.h>
#include <russet/data/images.h>
#include <russet/error.h>
#include <russet/io/file.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstring>
#include <tuple>

namespace russet::data {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_image(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

std::vector<std::string> subfolders(const fs::path& root) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_directory() && !is_hidden(entry.path())) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Found {
  std::string folder;  // below the root
  std::string name;
  std::uint64_t bytes;
};

/// The images below root/name, sorted by folder, then by name.
std::vector<Found> images_of(const fs::path& root, const std::string& name) {
  std::vector<Found> found;
  constexpr auto follow = fs::directory_options::follow_directory_symlink;
  for (auto entry = fs::recursive_directory_iterator(root / name, follow); entry != fs::recursive_directory_iterator();
       ++entry) {
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (is_image(entry->path()) && entry->is_regular_file()) {
      const fs::path below = entry->path().lexically_relative(root);
      found.push_back({below.parent_path().string(), below.filename().string(), entry->file_size()});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return std::tie(a.folder, a.name) < std::tie(b.folder, b.name); });
  return found;
}

/// The content of files that have been read, in one piece of memory that is touched as far as it is used.
class Cache {
 public:
  void reserve(const std::vector<std::uint64_t>& sizes) {
    begins_.assign(1, 0);
    for (const std::uint64_t size : sizes) begins_.push_back(begins_.back() + size);
    memory_ = std::make_unique_for_overwrite<std::byte[]>(begins_.back());
    states_ = std::make_unique<std::atomic<State>[]>(sizes.size());
  }
  /// The file's content, or nothing.
  std::span<const std::byte> find(std::size_t file) const {
    if (!states_ || states_[file].load(std::memory_order_acquire) != State::ready) return {};
    return place(file);
  }
  /// Keeps it, unless another thread is at it or the file changed its size since it was listed.
  void keep(std::size_t file, std::span<const std::byte> content) const {
    if (!states_ || content.size() != place(file).size()) return;
    State expected = State::absent;
    if (!states_[file].compare_exchange_strong(expected, State::claimed)) return;
    if (!content.empty()) std::memcpy(place(file).data(), content.data(), content.size());
    states_[file].store(State::ready, std::memory_order_release);
  }

 private:
  enum class State : std::uint8_t { absent, claimed, ready };
  std::span<std::byte> place(std::size_t file) const {
    return {memory_.get() + begins_[file], begins_[file + 1] - begins_[file]};
  }
  std::vector<std::uint64_t> begins_;
  std::unique_ptr<std::byte[]> memory_;
  std::unique_ptr<std::atomic<State>[]> states_;
};

}  // namespace

struct ImageFolder::Files {
  fs::path root;
  int channels = 3;
  std::vector<std::string> classes;
  std::vector<std::string> names;  // below the root
  std::vector<std::int64_t> labels;
  Cache cache;

  void list(const FolderOptions& options);
};

void ImageFolder::Files::list(const FolderOptions& options) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t total = 0;
  const std::vector<std::string> folders = subfolders(root);
  classes = options.classes.empty() ? folders : options.classes;
  for (const std::string& folder : folders) {
    const auto place = std::find(classes.begin(), classes.end(), folder);
    if (place == classes.end()) {
      throw FileError(fmt::format("{}: \"{}\" is not among the {} classes", root.string(), folder, classes.size()));
    }
    const std::vector<Found> found = images_of(root, folder);
    if (found.empty()) throw FileError(fmt::format("{}: there is no JPEG or PNG file", (root / folder).string()));
    for (const Found& image : found) {
      names.push_back(image.folder + "/" + image.name);
      labels.push_back(place - classes.begin());
      sizes.push_back(image.bytes);
      total += image.bytes;
    }
  }
  if (names.empty()) {
    throw FileError(
        fmt::format("{}: there are no subfolders; one for each class is expected, with its JPEG or PNG "
                    "files",
                    root.string()));
  }
  if (total <= options.cache_bytes) cache.reserve(sizes);
}

ImageFolder::ImageFolder(const fs::path& root, Transforms transforms, const FolderOptions& options)
    : ImageDataset(std::move(transforms)) {
  if (options.channels != 1 && options.channels != 3) throw ValueError("ImageFolder: channels must be 1 or 3");
  auto files = std::make_shared<Files>();
  files->root = root;
  files->channels = options.channels;
  try {
    files->list(options);
  } catch (const fs::filesystem_error& error) {
    throw FileError(fmt::format("{}: {}", error.path1().string(), error.code().message()));
  }
  files_ = std::move(files);
  Image first;
  read(0, first);
  set_image_size({first.height, first.width, first.channels});
}

std::int64_t ImageFolder::size() const { return static_cast<std::int64_t>(files_->names.size()); }
std::int64_t ImageFolder::classes() const { return static_cast<std::int64_t>(files_->classes.size()); }
std::vector<std::string> ImageFolder::class_names() const { return files_->classes; }
std::int64_t ImageFolder::label(std::int64_t index) const { return files_->labels[static_cast<std::size_t>(index)]; }

std::string ImageFolder::describe(std::int64_t index) const {
  return (files_->root / files_->names[static_cast<std::size_t>(index)]).string();
}

std::span<const std::byte> ImageFolder::content(std::int64_t index) const {
  constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 30;
  thread_local std::vector<std::byte> content;
  const auto file = static_cast<std::size_t>(index);
  const std::span<const std::byte> kept = files_->cache.find(file);
  if (!kept.empty()) return kept;
  io::read_file(describe(index), content, max_file_bytes);
  files_->cache.keep(file, content);
  return content;
}

void ImageFolder::read(std::int64_t index, Image& image) const {
  io::decode_image(content(index), describe(index), files_->channels, image);
}

int ImageFolder::read_reduced(std::int64_t index, const io::ChooseReduction& choose, Image& image) const {
  return io::decode_reduced(content(index), describe(index), files_->channels, choose, image);
}

}  // namespace russet::data
