#include "files/encoders.h"

#include <cstdio>
// jpeglib.h needs FILE first.
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>

namespace russet::files {

io::Image test_picture(std::int64_t height, std::int64_t width, int channels) {
  io::Image image;
  image.resize(height, width, channels);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        const std::int64_t value = c == 0   ? 20 + 200 * x / width
                                   : c == 1 ? 230 - 200 * y / height
                                            : 40 + 90 * (x + y) / width;
        image.row(y)[x * channels + c] = static_cast<std::uint8_t>(value);
      }
    }
  }
  return image;
}

Bytes encode_jpeg(const io::Image& image, const JpegKind& kind) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = image.channels;
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kind.quality, TRUE);
  if (kind.progressive) jpeg_simple_progression(&info);
  if (!kind.subsampled) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  if (image.channels == 4) info.write_Adobe_marker = TRUE;
  jpeg_start_compress(&info, TRUE);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(image.width * image.channels));
  while (info.next_scanline < info.image_height) {
    std::copy_n(image.row(info.next_scanline), row.size(), row.begin());
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  const auto* const first = reinterpret_cast<const std::byte*>(memory);
  Bytes file(first, first + size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return file;
}

Bytes encode_png(std::int64_t height, std::int64_t width, const PngKind& kind, const std::vector<std::uint8_t>& samples,
                 const std::vector<std::uint8_t>& palette, const std::vector<std::uint8_t>& palette_alpha) {
  Bytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  const auto append = [](png_structp writer, png_bytep data, png_size_t count) {
    auto* const target = static_cast<Bytes*>(png_get_io_ptr(writer));
    const auto* const first = reinterpret_cast<const std::byte*>(data);
    target->insert(target->end(), first, first + count);
  };
  png_set_write_fn(png, &file, append, [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), kind.bit_depth,
               kind.colour_type, kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!palette.empty()) {
    png_set_PLTE(png, info, reinterpret_cast<png_const_colorp>(palette.data()), static_cast<int>(palette.size() / 3));
  }
  if (!palette_alpha.empty()) {
    png_set_tRNS(png, info, palette_alpha.data(), static_cast<int>(palette_alpha.size()), nullptr);
  }
  png_write_info(png, info);
  const std::size_t row_bytes = png_get_rowbytes(png, info);
  std::vector<png_bytep> rows;
  for (std::int64_t y = 0; y < height; ++y) {
    rows.push_back(const_cast<png_bytep>(samples.data()) + static_cast<std::size_t>(y) * row_bytes);
  }
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

Bytes gzip(const Bytes& content) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
  Bytes file(deflateBound(&stream, content.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(file.data());
  stream.avail_out = static_cast<uInt>(file.size());
  deflate(&stream, Z_FINISH);
  file.resize(stream.total_out);
  deflateEnd(&stream);
  return file;
}

}  // namespace russet::files
