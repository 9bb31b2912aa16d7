#pragma once
// Sets of images with a class each: folders of files, MNIST, CIFAR-10, and the embedded procedural shapes.
#include <russet/data/dataset.h>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace russet::data {

/// Images with integer labels. Inputs are [channels, height, width], or [views, channels, height, width] where the
/// transforms make several views of an image; targets are int64 scalars.
class ImageDataset : public Dataset {
 public:
  Field input() const final;
  Field target() const final { return {DType::int64, {}}; }
  void get(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target, Random& random) const final;
  DatasetPtr with(Transforms transforms) const final;
  const Transforms& transforms() const { return transforms_; }

  /// Replaces `image` by image `index`, before any transform.
  virtual void read(std::int64_t index, Image& image) const = 0;
  /// The same to 1 / n of its height and width, if it is a file that can be decoded so and `choose` says n. Returns n,
  /// else 1.
  virtual int read_reduced(std::int64_t index, const io::ChooseReduction& choose, Image& image) const;
  virtual std::int64_t label(std::int64_t index) const = 0;
  /// What errors call image `index`.
  virtual std::string describe(std::int64_t index) const = 0;

 protected:
  explicit ImageDataset(Transforms transforms) : transforms_(std::move(transforms)) {}
  /// Derived constructors call this once: `size` is that of the first image.
  void set_image_size(ImageSize size);
  virtual std::shared_ptr<ImageDataset> clone() const = 0;

 private:
  class Source;
  Transforms transforms_;
  ImageSize original_;
  ImageSize result_;
};

struct FolderOptions {
  int channels = 3;
  /// The names of the classes by number; empty: the names of the subfolders in alphabetical order.
  std::vector<std::string> classes{};
  /// Files are kept in memory once read if all of them together are not larger than this.
  std::uint64_t cache_bytes = std::uint64_t{512} << 20;
};

/// root/CLASS/**.{jpg,jpeg,png}: one subfolder a class, files in alphabetical order; names that begin with a dot are
/// skipped. Throws FileError, which names the file, for a folder without images and for damaged files.
class ImageFolder final : public ImageDataset {
 public:
  explicit ImageFolder(const std::filesystem::path& root, Transforms transforms = {ToFloat{}},
                       const FolderOptions& options = {});

  std::int64_t size() const override;
  std::int64_t classes() const override;
  std::vector<std::string> class_names() const override;
  void read(std::int64_t index, Image& image) const override;
  int read_reduced(std::int64_t index, const io::ChooseReduction& choose, Image& image) const override;
  std::int64_t label(std::int64_t index) const override;
  std::string describe(std::int64_t index) const override;

 private:
  struct Files;
  std::shared_ptr<ImageDataset> clone() const override { return std::make_shared<ImageFolder>(*this); }
  /// Of the file; good until the next call on this thread.
  std::span<const std::byte> content(std::int64_t index) const;
  std::shared_ptr<const Files> files_;
};

/// A pair of IDX files, plain or gzipped: images [count, height, width] and labels [count].
class Mnist final : public ImageDataset {
 public:
  Mnist(const std::filesystem::path& images, const std::filesystem::path& labels, Transforms transforms = {ToFloat{}});

  std::int64_t size() const override;
  std::int64_t classes() const override;
  void read(std::int64_t index, Image& image) const override;
  std::int64_t label(std::int64_t index) const override;
  std::string describe(std::int64_t index) const override;

 private:
  struct Arrays;
  std::shared_ptr<ImageDataset> clone() const override { return std::make_shared<Mnist>(*this); }
  std::shared_ptr<const Arrays> arrays_;
};

/// CIFAR-10's binary files (data_batch_1.bin, ...), one after the other: images of 32 x 32 and their labels. All is
/// read at once. Throws FileError for a file that is not made of whole records, and for labels above 9.
class Cifar10 final : public ImageDataset {
 public:
  explicit Cifar10(const std::vector<std::filesystem::path>& files, Transforms transforms = {ToFloat{}});

  std::int64_t size() const override;
  std::int64_t classes() const override;
  std::vector<std::string> class_names() const override;
  void read(std::int64_t index, Image& image) const override;
  std::int64_t label(std::int64_t index) const override;
  std::string describe(std::int64_t index) const override;

 private:
  struct Records;
  std::shared_ptr<ImageDataset> clone() const override { return std::make_shared<Cifar10>(*this); }
  std::shared_ptr<const Records> records_;
};

struct ShapesOptions {
  std::int64_t size = 10'000;
  std::int64_t side = 32;
  std::uint64_t seed = 0;
  /// Training and test images of one seed are different ones.
  bool test = false;
};

/// Images side x side of one of ten shapes (circle, ring, square, frame, triangle, diamond, cross, star, crescent,
/// heart) at a random place, in random size, tilt and colours (bright on dark), with noise. Image i depends on seed and
/// i only.
class Shapes final : public ImageDataset {
 public:
  explicit Shapes(const ShapesOptions& options = {}, Transforms transforms = {ToFloat{}});

  std::int64_t size() const override { return options_.size; }
  std::int64_t classes() const override;
  std::vector<std::string> class_names() const override;
  void read(std::int64_t index, Image& image) const override;
  std::int64_t label(std::int64_t index) const override;
  std::string describe(std::int64_t index) const override;

 private:
  std::shared_ptr<ImageDataset> clone() const override { return std::make_shared<Shapes>(*this); }
  ShapesOptions options_;
};

}  // namespace russet::data
