#include <fmt/format.h>
#include <russet/data/images.h>
#include <russet/error.h>

#include <cstring>

namespace russet::data {

void ImageDataset::set_image_size(ImageSize size) {
  original_ = size;
  result_ = transforms_.result(size);
}

Field ImageDataset::input() const {
  Field field{transforms_.dtype(), {result_.channels, result_.height, result_.width}};
  if (transforms_.views() > 1) field.shape.insert(0, transforms_.views());
  return field;
}

/// Writes the views of `image`, which is scratch from then on.
void ImageDataset::write_views(Image& image, std::span<std::byte> input, Random& random) const {
  thread_local Image copy;  // the last view is made of the image itself
  const std::int64_t views = transforms_.views();
  const std::size_t bytes = input.size() / static_cast<std::size_t>(views);
  for (std::int64_t view = 0; view < views; ++view) {
    const bool last = view + 1 == views;
    if (!last) copy = image;
    const auto place = input.subspan(static_cast<std::size_t>(view) * bytes, bytes);
    transforms_.apply(last ? image : copy, result_, place, random);
  }
}

void ImageDataset::get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target,
                       Random& random) const {
  thread_local Image image;
  read(index, image);
  try {
    write_views(image, input, random);
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
