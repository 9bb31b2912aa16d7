// SimCLR's parts against torchvision and PyTorch (scripts/golden/simclr.py).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <russet/data.h>
#include <russet/train.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "calls/golden.h"

namespace golden {
namespace {

using russet::DType;
using russet::Shape;
using russet::Tensor;
namespace data = russet::data;
namespace train = russet::train;

constexpr std::uint64_t seed = 15;

const Json& record() {
  static const Json read = read_json("simclr.json.gz");
  return read;
}

std::vector<std::uint8_t> decode(const std::string& base64) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char letter : base64) {
    if (letter == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(letters.find(letter));
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<std::uint8_t>(bits >> held));
  }
  return bytes;
}

data::Image source() {
  data::Image image;
  image.resize(record().at("height"), record().at("width"), 3);
  image.pixels = decode(record().at("image"));
  return image;
}

data::Image flipped(const data::Image& image) {
  data::Image result = image;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      std::copy_n(image.row(y) + x * 3, 3, result.row(y) + (image.width - 1 - x) * 3);
    }
  }
  return result;
}

data::Image changed(const Json& change) {
  const std::string name = change.at("name");
  const auto number = [&](std::size_t i) { return change.at("numbers").at(i).get<double>(); };
  const auto whole = [&](std::size_t i) { return change.at("numbers").at(i).get<std::int64_t>(); };
  const std::map<std::string, void (*)(data::Image&, double)> by_factor{
      {"adjust_brightness", data::adjust_brightness},
      {"adjust_contrast", data::adjust_contrast},
      {"adjust_saturation", data::adjust_saturation},
      {"adjust_hue", data::adjust_hue},
  };
  data::Image image = source();
  if (by_factor.contains(name)) {
    by_factor.at(name)(image, number(0));
  } else if (name == "to_grayscale") {
    data::to_grayscale(image);
  } else if (name == "gaussian_blur") {
    data::gaussian_blur(image, whole(0), number(1));
  } else if (name == "hflip") {
    return flipped(image);
  } else if (name == "resized_crop") {
    data::Image target;
    target.resize(whole(4), whole(4), 3);
    data::resize_bilinear(image, whole(0), whole(1), whole(2), whole(3), target);
    return target;
  } else {
    EXPECT_EQ(name, "sequence");
    data::adjust_brightness(image, 1.3);
    data::adjust_hue(image, -0.08);
    data::adjust_contrast(image, 0.6);
  }
  return image;
}

/// The largest difference of a sample, in levels.
int distance(const data::Image& image, const std::vector<std::uint8_t>& expected) {
  int largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(int{image.pixels[i]} - int{expected[i]}));
  }
  return largest;
}

// What is recorded of a test, scripts/golden/compare_simclr.py reads.

/// Blurs are sums in float32, which torchvision adds up in another order: a level may round the other way.
TEST(SimClr, PixelsAreTorchvisions) {
  std::map<bool, int> farthest;  // of blurs, and of all else
  for (const Json& change : record().at("changes")) {
    const std::string name = change.at("name").get<std::string>() + change.at("numbers").dump();
    const bool blurs = change.at("name") == "gaussian_blur";
    const data::Image image = changed(change);
    const std::vector<std::uint8_t> expected = decode(change.at("pixels"));
    ASSERT_EQ(image.pixels.size(), expected.size()) << name;
    const int levels = distance(image, expected);
    EXPECT_LE(levels, blurs ? 1 : 0) << name;
    farthest[blurs] = std::max(farthest[blurs], levels);
  }
  RecordProperty("changes", static_cast<int>(record().at("changes").size()));
  RecordProperty("levels", farthest[false]);
  RecordProperty("levels_of_blurs", farthest[true]);
}

/// The norm of the difference, relative to that of `expected`.
double distance(const std::vector<double>& found, const std::vector<double>& expected) {
  double difference = 0;
  double whole = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (found.at(i) - expected[i]) * (found.at(i) - expected[i]);
    whole += expected[i] * expected[i];
  }
  return std::sqrt(difference / whole);
}

TEST(SimClr, LossAndItsGradients) {
  double farthest_loss = 0;
  double farthest_gradient = 0;
  for (const Json& expected : record().at("losses")) {
    for (const DType type : {DType::float32, DType::float64}) {
      const double tolerance = type == DType::float64 ? 1e-12 : 1e-5;
      Tensor x = real(seed, expected.at("offset"), shape_of(expected.at("shape")), -1, 1, type);
      x.requires_grad_(true);
      const Tensor loss = train::nt_xent_loss(x, expected.at("temperature"));
      loss.backward();
      const double value = expected.at("loss");
      EXPECT_NEAR(loss.item(), value, tolerance * (1 + loss.item()));
      const std::vector<double> gradient = x.grad().to_vector<double>();
      EXPECT_EQ(difference(gradient, numbers(expected.at("gradient")), tolerance), "");
      farthest_loss = std::max(farthest_loss, std::abs(loss.item() - value) / value);
      farthest_gradient = std::max(farthest_gradient, distance(gradient, numbers(expected.at("gradient"))));
    }
  }
  RecordProperty("loss", fmt::format("{}", farthest_loss));
  RecordProperty("gradient", fmt::format("{}", farthest_gradient));
}

TEST(SimClr, VotesOfNeighbours) {
  for (const Json& expected : record().at("votes")) {
    const std::uint64_t offset = expected.at("offset");
    const std::int64_t bank = expected.at("bank");
    const std::int64_t width = expected.at("width");
    const std::int64_t classes = expected.at("classes");
    const Tensor votes = train::neighbour_votes(
        real(seed, 30 + offset, {expected.at("queries").get<std::int64_t>(), width}, -1, 1, DType::float64),
        real(seed, 40 + offset, {bank, width}, -1, 1, DType::float64),
        integer(seed, 50 + offset, {bank}, 0, classes, DType::int64), classes,
        {.neighbours = expected.at("neighbours")});
    EXPECT_EQ(difference(votes.to_vector<double>(), numbers(expected.at("votes")), 1e-12), "");
  }
}

}  // namespace
}  // namespace golden
