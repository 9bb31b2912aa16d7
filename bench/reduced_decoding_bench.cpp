// Crops of JPEG files that are decoded to a part of their size, against crops of whole files: how much pixels differ,
// in levels of 255, and what decoding and cropping costs.
//
// usage: reduced_decoding_bench FOLDER [SIZE]     FOLDER/CLASS/*.jpg; crops of SIZE x SIZE (224)
#include <fmt/format.h>
#include <russet/data.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace {

using namespace russet;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t crops_each = 40;

struct Crop {
  std::vector<std::uint8_t> pixels;
  double seconds = 0;
};

Crop crop_of(const data::Dataset& images, std::int64_t index, std::uint64_t number) {
  Crop crop;
  crop.pixels.resize(images.input().bytes());
  std::int64_t label = 0;
  data::Random random(0, data::Random::Purpose::augmentation, 0, number);
  const auto start = Clock::now();
  images.get(index, std::as_writable_bytes(std::span(crop.pixels)), std::as_writable_bytes(std::span(&label, 1)),
             random);
  crop.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return crop;
}

/// Of the crops that come out different, which are those of reduced files.
struct Comparison {
  std::vector<int> levels;
  int crops = 0;
  double seconds = 0;
  double whole_seconds = 0;
};

Comparison compare(const data::Dataset& reduced, const data::Dataset& whole, std::int64_t index) {
  Comparison all;
  for (std::uint64_t number = 0; number < crops_each; ++number) {
    const Crop found = crop_of(reduced, index, number);
    const Crop expected = crop_of(whole, index, number);
    if (found.pixels == expected.pixels) continue;
    ++all.crops;
    all.seconds += found.seconds;
    all.whole_seconds += expected.seconds;
    for (std::size_t at = 0; at < found.pixels.size(); ++at) {
      all.levels.push_back(std::abs(int{found.pixels[at]} - int{expected.pixels[at]}));
    }
  }
  std::sort(all.levels.begin(), all.levels.end());
  return all;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: reduced_decoding_bench FOLDER [SIZE]\n");
    return 2;
  }
  data::RandomResizedCrop crop{.size = count > 2 ? std::atoi(arguments[2]) : 224};
  const data::ImageFolder reduced(arguments[1], data::Transforms{crop});
  crop.reduced_decoding = false;
  const data::ImageFolder whole(arguments[1], data::Transforms{crop});
  for (std::int64_t i = 0; i < reduced.size(); ++i) {
    const Comparison all = compare(reduced, whole, i);
    fmt::print("{}: {} of {} crops from a reduced file\n", reduced.describe(i), all.crops, crops_each);
    if (all.levels.empty()) continue;
    const double mean = std::accumulate(all.levels.begin(), all.levels.end(), 0.0) / std::ssize(all.levels);
    fmt::print(
        "  levels: mean {:.2f}, 99 of 100 within {}, largest {}; {:.2f} ms a crop, {:.2f} ms of the whole file\n", mean,
        all.levels[all.levels.size() * 99 / 100], all.levels.back(), all.seconds / all.crops * 1e3,
        all.whole_seconds / all.crops * 1e3);
  }
}
