// CIFAR-10's binary files: records of a label and a picture's three planes, one after the other.
#include <fmt/format.h>
#include <russet/data/images.h>
#include <russet/error.h>
#include <russet/io/file.h>

#include <algorithm>
#include <array>
#include <utility>

namespace russet::data {
namespace {

constexpr std::int64_t side = 32;
constexpr std::size_t plane_bytes = side * side;
constexpr std::size_t record_bytes = 1 + 3 * plane_bytes;
constexpr std::array<const char*, 10> names{"airplane", "automobile", "bird",  "cat",  "deer",
                                            "dog",      "frog",       "horse", "ship", "truck"};
constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 31;

/// Throws FileError unless these are whole records with labels of classes that there are.
void check(const std::filesystem::path& path, std::span<const std::byte> content) {
  if (content.empty() || content.size() % record_bytes != 0) {
    throw FileError(
        fmt::format("{}: {} bytes are no file of CIFAR-10, in which a label and a picture take {} bytes (10,000 of "
                    "them: {} bytes). Is it cut off?",
                    path.string(), content.size(), record_bytes, record_bytes * 10'000));
  }
  for (std::size_t at = 0; at < content.size(); at += record_bytes) {
    const int label = std::to_integer<int>(content[at]);
    if (label >= static_cast<int>(names.size())) {
      throw FileError(fmt::format("{}: image {} has the label {}, but CIFAR-10's are 0 to {}", path.string(),
                                  at / record_bytes, label, names.size() - 1));
    }
  }
}

}  // namespace

/// The content of all files in one piece, and where each begins.
struct Cifar10::Records {
  std::vector<std::byte> bytes;
  std::vector<std::pair<std::int64_t, std::string>> files;  // first image, name

  std::span<const std::byte> record(std::int64_t index) const {
    return std::span(bytes).subspan(static_cast<std::size_t>(index) * record_bytes, record_bytes);
  }
};

Cifar10::Cifar10(const std::vector<std::filesystem::path>& files, Transforms transforms)
    : ImageDataset(std::move(transforms)) {
  auto records = std::make_shared<Records>();
  std::vector<std::byte> content;
  for (const std::filesystem::path& path : files) {
    io::read_file(path, content, max_file_bytes);
    check(path, content);
    records->files.emplace_back(static_cast<std::int64_t>(records->bytes.size() / record_bytes), path.string());
    records->bytes.insert(records->bytes.end(), content.begin(), content.end());
  }
  if (records->files.empty()) throw ValueError("Cifar10: no files are named");
  records_ = std::move(records);
  set_image_size({side, side, 3});
}

std::int64_t Cifar10::size() const { return static_cast<std::int64_t>(records_->bytes.size() / record_bytes); }
std::int64_t Cifar10::classes() const { return static_cast<std::int64_t>(names.size()); }
std::vector<std::string> Cifar10::class_names() const { return {names.begin(), names.end()}; }

std::int64_t Cifar10::label(std::int64_t index) const {
  return std::to_integer<std::int64_t>(records_->record(index).front());
}

std::string Cifar10::describe(std::int64_t index) const {
  const auto behind = std::find_if(records_->files.begin(), records_->files.end(),
                                   [&](const auto& file) { return file.first > index; });
  const auto& [first, name] = *std::prev(behind);
  return fmt::format("{}: image {}", name, index - first);
}

void Cifar10::read(std::int64_t index, Image& image) const {
  image.resize(side, side, 3);
  const std::span<const std::byte> planes = records_->record(index).subspan(1);
  std::uint8_t* out = image.pixels.data();
  for (std::size_t i = 0; i < plane_bytes; ++i) {
    for (std::size_t c = 0; c < 3; ++c) *out++ = std::to_integer<std::uint8_t>(planes[c * plane_bytes + i]);
  }
}

}  // namespace russet::data
