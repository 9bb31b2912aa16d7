// libjpeg reports errors through a callback that must not return. It jumps back into the reader, across C frames and
// our own functions that hold nothing to destroy; from there a typed exception is thrown.
#include <cstdio>
// jpeglib.h needs FILE first.
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>
#include <russet/error.h>
#include <russet/io/image.h>

#include <csetjmp>
#include <string>

#include "io/jpeg.h"

namespace russet::io {
namespace {

/// More scans than any encoder writes: each costs a pass over the whole image (the bound of libjpeg-turbo's fuzzers).
constexpr int max_scans = 500;
/// The most pixels that a byte of a JPEG file can stand for: 10 blocks of a bit each in a unit of 32 x 32 pixels.
constexpr std::int64_t max_pixels_per_byte = 1024;

struct ErrorState {
  jpeg_error_mgr manager;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_error(j_common_ptr info) {
  auto* const state = reinterpret_cast<ErrorState*>(info->err);
  state->manager.format_message(info, state->message);
  std::longjmp(state->jump, 1);
}

/// Warnings (level -1) mean damaged data, whose rest libjpeg would fill with grey; only those about how a file is
/// dressed pass.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_TOO_MUCH_DATA: return;
    default: on_error(info);
  }
}

void on_progress(j_common_ptr info) {
  auto* const state = reinterpret_cast<ErrorState*>(info->err);
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= max_scans) return;
  std::snprintf(state->message, sizeof(state->message), "more than %d scans", max_scans);
  std::longjmp(state->jump, 1);
}

class JpegReader {
 public:
  JpegReader(std::span<const std::byte> file, std::string_view name) : file_(file), name_(name) {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = on_error;
    errors_.manager.emit_message = on_message;
    guarded([this] { jpeg_create_decompress(&info_); });
    progress_.progress_monitor = on_progress;
    info_.progress = &progress_;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  int decode(int channels, const ChooseReduction& choose, Image& image, const ImageLimits& limits) {
    guarded([this] {
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file_.data()), file_.size());
      jpeg_read_header(&info_, TRUE);
    });
    check_size(limits);
    const int reduction = choose ? choose(info_.image_height, info_.image_width) : 1;
    if (reduction != 1 && reduction != 2 && reduction != 4 && reduction != 8) {
      throw ValueError(fmt::format("{}: JPEG files are decoded to 1/2, 1/4 or 1/8, not 1/{}", name_, reduction));
    }
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(reduction);
    const bool four = info_.num_components == 4;
    info_.out_color_space = four ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    guarded([this] { jpeg_start_decompress(&info_); });
    image.resize(info_.output_height, info_.output_width, channels);
    if (four) {
      std::vector<std::uint8_t> row(std::size_t{info_.output_width} * 4);
      while (info_.output_scanline < info_.output_height) {
        const std::int64_t y = info_.output_scanline;
        read_row(row.data());
        convert_cmyk(row.data(), image.row(y), channels);
      }
    } else {
      while (info_.output_scanline < info_.output_height) read_row(image.row(info_.output_scanline));
    }
    // Reads up to the end marker, so that a file cut behind its last row is seen.
    guarded([this] { jpeg_finish_decompress(&info_); });
    return reduction;
  }

 private:
  /// `body` and what it calls may hold nothing that needs a destructor.
  template <class Body>
  void guarded(const Body& body) {
    if (setjmp(errors_.jump) != 0) throw FileError(fmt::format("{}: damaged JPEG: {}", name_, errors_.message));
    body();
  }

  void check_size(const ImageLimits& limits) const {
    const std::int64_t pixels = std::int64_t{info_.image_width} * info_.image_height;
    if (pixels > limits.max_pixels) {
      throw FileError(fmt::format("{}: the image is too large: {} x {} pixels, at most {} are read", name_,
                                  info_.image_width, info_.image_height, limits.max_pixels));
    }
    if (pixels / max_pixels_per_byte > static_cast<std::int64_t>(file_.size())) {
      throw FileError(fmt::format("{}: damaged JPEG: {} bytes cannot hold {} x {} pixels", name_, file_.size(),
                                  info_.image_width, info_.image_height));
    }
  }

  void read_row(std::uint8_t* row) {
    guarded([this, row] {
      JSAMPROW rows[] = {row};
      jpeg_read_scanlines(&info_, rows, 1);
    });
  }

  /// Adobe's files hold inverted ink.
  void convert_cmyk(const std::uint8_t* row, std::uint8_t* out, int channels) const {
    const int flip = info_.saw_Adobe_marker ? 0 : 255;
    for (std::int64_t x = 0; x < info_.output_width; ++x, row += 4, out += channels) {
      int rgb[3];
      for (int c = 0; c < 3; ++c) rgb[c] = ((row[c] ^ flip) * (row[3] ^ flip) + 127) / 255;
      if (channels == 3) {
        for (int c = 0; c < 3; ++c) out[c] = static_cast<std::uint8_t>(rgb[c]);
      } else {
        out[0] = static_cast<std::uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 32768) >> 16);
      }
    }
  }

  std::span<const std::byte> file_;
  std::string_view name_;
  jpeg_decompress_struct info_{};
  jpeg_progress_mgr progress_{};
  ErrorState errors_{};
};

}  // namespace

void decode_jpeg(std::span<const std::byte> file, std::string_view name, int channels, Image& image,
                 const ImageLimits& limits) {
  decode_jpeg_reduced(file, name, channels, {}, image, limits);
}

int decode_jpeg_reduced(std::span<const std::byte> file, std::string_view name, int channels,
                        const ChooseReduction& choose, Image& image, const ImageLimits& limits) {
  if (channels != 1 && channels != 3) throw ValueError("decode_jpeg: channels must be 1 or 3");
  if (file.empty()) throw FileError(fmt::format("{}: the file is empty", name));
  // A reader for each image: one that is used again would let an image use the tables of another.
  return JpegReader(file, name).decode(channels, choose, image, limits);
}

}  // namespace russet::io
