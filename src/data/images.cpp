#include <fmt/format.h>
#include <russet/data/images.h>
#include <russet/error.h>

#include <cstring>

namespace russet::data {

void ImageDataset::set_image_size(ImageSize size) {
  original_ = size;
  result_ = transforms_.result(size);
}

Field ImageDataset::input() const { return {transforms_.dtype(), {result_.channels, result_.height, result_.width}}; }

void ImageDataset::get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target,
                       Random& random) const {
  thread_local Image image;
  read(index, image);
  try {
    transforms_.apply(image, result_, input, random);
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    throw FileError(fmt::format("{}: {}", describe(index), error.what()));
  }
  const std::int64_t value = label(index);
  std::memcpy(target.data(), &value, sizeof(value));
}

DatasetPtr ImageDataset::with(Transforms transforms) const {
  std::shared_ptr<ImageDataset> copy = clone();
  copy->transforms_ = std::move(transforms);
  copy->set_image_size(original_);
  return copy;
}

}  // namespace russet::data
