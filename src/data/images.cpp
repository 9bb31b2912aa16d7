#include <fmt/format.h>
#include <russet/data/images.h>
#include <russet/error.h>

#include <cstring>
#include <optional>
#include <utility>

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

int ImageDataset::read_reduced(std::int64_t index, const io::ChooseReduction& /*choose*/, Image& image) const {
  read(index, image);
  return 1;
}

/// The image of a sample, which is decoded as large as its next view needs it, until one needs all of it.
class ImageDataset::Source {
 public:
  Source(const ImageDataset& dataset, std::int64_t index) : dataset_(dataset), index_(index) {}

  /// The image of the next view, scratch memory from then on.
  Image& next(Random& random, bool last) {
    drawn_.reset();
    if (!has_whole_) {
      if (read(random) > 1) return view();
      std::swap(whole(), view());
      has_whole_ = true;
    }
    if (last) return whole();
    view() = whole();
    return view();
  }
  /// What was drawn to know how large the image has to be, if it was.
  const std::optional<DrawnCrop>& drawn() const { return drawn_; }

 private:
  static Image& whole() {
    thread_local Image image;
    return image;
  }
  static Image& view() {
    thread_local Image image;
    return image;
  }

  /// Reads the image, or as much of it as the view needs, into view(). Returns by how much it was reduced.
  int read(Random& random) {
    const Transforms& transforms = dataset_.transforms_;
    const auto choose = [&](std::int64_t height, std::int64_t width) {
      drawn_ = transforms.draw_crop(height, width, random);
      return drawn_->reduction;
    };
    if (transforms.may_reduce()) return dataset_.read_reduced(index_, choose, view());
    dataset_.read(index_, view());
    return 1;
  }

  const ImageDataset& dataset_;
  std::int64_t index_;
  bool has_whole_ = false;
  std::optional<DrawnCrop> drawn_;
};

void ImageDataset::get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target,
                       Random& random) const {
  Source source(*this, index);
  const auto views = static_cast<std::size_t>(transforms_.views());
  const std::size_t bytes = input.size() / views;
  try {
    for (std::size_t view = 0; view < views; ++view) {
      Image& image = source.next(random, view + 1 == views);
      transforms_.apply(image, result_, input.subspan(view * bytes, bytes), random, source.drawn());
    }
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
