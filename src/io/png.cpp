// libpng, as libjpeg, reports errors through a callback that must not return; see jpeg.cpp.
#include <fmt/format.h>
#include <png.h>
#include <russet/error.h>
#include <russet/io/image.h>

#include <csetjmp>
#include <cstring>
#include <string>

#include "io/deflate.h"

namespace russet::io {
namespace {

constexpr png_size_t max_chunk_bytes = 16 << 20;

struct Context {
  std::span<const std::byte> rest;
  char message[128] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* const context = static_cast<Context*>(png_get_error_ptr(png));
  std::snprintf(context->message, sizeof(context->message), "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep target, png_size_t count) {
  auto* const context = static_cast<Context*>(png_get_io_ptr(png));
  if (count > context->rest.size()) png_error(png, "it is truncated");
  std::memcpy(target, context->rest.data(), count);
  context->rest = context->rest.subspan(count);
}

class PngReader {
 public:
  PngReader(std::span<const std::byte> file, std::string_view name) : name_(name), file_bytes_(file.size()) {
    context_.rest = file;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &context_, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw OutOfMemoryError(fmt::format("{}: no memory for the PNG reader", name));
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  void decode(int channels, Image& image, const ImageLimits& limits) {
    guarded([this] {
      png_set_read_fn(png_, &context_, on_read);
      png_set_chunk_malloc_max(png_, max_chunk_bytes);
      png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
      png_read_info(png_, info_);
    });
    check_size(limits);
    guarded([this, channels] { request(channels); });
    image.resize(png_get_image_height(png_, info_), png_get_image_width(png_, info_), channels);
    if (png_get_rowbytes(png_, info_) != static_cast<std::size_t>(image.width * channels)) {
      throw InternalError(fmt::format("{}: libpng gives rows of {} bytes", name_, png_get_rowbytes(png_, info_)));
    }
    std::vector<png_bytep> rows(static_cast<std::size_t>(image.height));
    for (std::int64_t y = 0; y < image.height; ++y) rows[static_cast<std::size_t>(y)] = image.row(y);
    guarded([this, &rows] {
      png_read_image(png_, rows.data());
      png_read_end(png_, nullptr);
    });
  }

 private:
  /// `body` and what it calls may hold nothing that needs a destructor.
  template <class Body>
  void guarded(const Body& body) {
    if (setjmp(png_jmpbuf(png_)) != 0) throw FileError(fmt::format("{}: damaged PNG: {}", name_, context_.message));
    body();
  }

  void check_size(const ImageLimits& limits) const {
    const std::int64_t width = png_get_image_width(png_, info_);
    const std::int64_t height = png_get_image_height(png_, info_);
    if (width > limits.max_pixels / height) {
      throw FileError(fmt::format("{}: the image is too large: {} x {} pixels, at most {} are read", name_, width,
                                  height, limits.max_pixels));
    }
    const auto row_bytes = static_cast<std::int64_t>(png_get_rowbytes(png_, info_));
    if (row_bytes * height / max_inflation > static_cast<std::int64_t>(file_bytes_)) {
      throw FileError(
          fmt::format("{}: damaged PNG: {} bytes cannot hold {} x {} pixels", name_, file_bytes_, width, height));
    }
  }

  /// 8 bits a sample, no palette, no alpha, RGB or grey.
  void request(int channels) {
    const int colour = png_get_color_type(png_, info_);
    png_set_scale_16(png_);
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (colour == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png_, info_) < 8) png_set_expand_gray_1_2_4_to_8(png_);
    png_set_strip_alpha(png_);
    const bool grey = (colour & PNG_COLOR_MASK_COLOR) == 0;
    if (channels == 3 && grey) png_set_gray_to_rgb(png_);
    if (channels == 1 && !grey) png_set_rgb_to_gray_fixed(png_, PNG_ERROR_ACTION_NONE, 29900, 58700);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  std::string_view name_;
  std::size_t file_bytes_;
  Context context_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

void decode_png(std::span<const std::byte> file, std::string_view name, int channels, Image& image,
                const ImageLimits& limits) {
  if (channels != 1 && channels != 3) throw ValueError("decode_png: channels must be 1 or 3");
  PngReader(file, name).decode(channels, image, limits);
}

std::vector<std::byte> encode_png(const Image& image) {
  if (image.channels != 1 && image.channels != 3) throw ValueError("encode_png: the image must have 1 or 3 channels");
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  std::vector<std::byte> file;
  bool written = png_image_write_to_memory(&header, nullptr, &size, 0, image.pixels.data(), 0, nullptr) != 0;
  if (written) {
    file.resize(size);
    written = png_image_write_to_memory(&header, file.data(), &size, 0, image.pixels.data(), 0, nullptr) != 0;
  }
  if (!written) throw ValueError(fmt::format("encode_png: {}", header.message));
  return file;
}

}  // namespace russet::io
