#include <fmt/format.h>
#include <russet/data/images.h>
#include <russet/error.h>
#include <russet/io/idx.h>

#include <algorithm>
#include <cstring>

namespace russet::data {

struct Mnist::Arrays {
  std::string name;
  io::IdxArray images;
  io::IdxArray labels;
  std::int64_t classes = 0;
};

Mnist::Mnist(const std::filesystem::path& images, const std::filesystem::path& labels, Transforms transforms)
    : ImageDataset(std::move(transforms)) {
  auto arrays = std::make_shared<Arrays>(Arrays{images.string(), io::read_idx(images), io::read_idx(labels)});
  const auto& [name, pictures, numbers, classes] = *arrays;
  if (pictures.dtype != DType::uint8 || pictures.shape.rank() != 3 || numel(pictures.shape) == 0) {
    throw FileError(fmt::format("{}: images must be uint8 of shape [count, height, width], not {} of shape {}", name,
                                name_of(pictures.dtype), to_string(pictures.shape)));
  }
  if (numbers.dtype != DType::uint8 || numbers.shape != Shape{pictures.shape[0]}) {
    throw FileError(fmt::format("{}: labels must be uint8 of shape [{}], as there are images, not {} of shape {}",
                                labels.string(), pictures.shape[0], name_of(numbers.dtype), to_string(numbers.shape)));
  }
  const auto largest = std::max_element(numbers.bytes.begin(), numbers.bytes.end());
  arrays->classes = std::max<std::int64_t>(std::to_integer<std::int64_t>(*largest) + 1, 10);
  const ImageSize size{pictures.shape[1], pictures.shape[2], 1};
  arrays_ = std::move(arrays);
  set_image_size(size);
}

std::int64_t Mnist::size() const { return arrays_->images.shape[0]; }
std::int64_t Mnist::classes() const { return arrays_->classes; }
std::string Mnist::describe(std::int64_t index) const { return fmt::format("{}: image {}", arrays_->name, index); }

std::int64_t Mnist::label(std::int64_t index) const {
  return std::to_integer<std::int64_t>(arrays_->labels.bytes[static_cast<std::size_t>(index)]);
}

void Mnist::read(std::int64_t index, Image& image) const {
  const Shape& shape = arrays_->images.shape;
  image.resize(shape[1], shape[2], 1);
  std::memcpy(image.pixels.data(), arrays_->images.bytes.data() + index * shape[1] * shape[2], image.pixels.size());
}

}  // namespace russet::data
