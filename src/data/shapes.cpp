// Procedural images. Each shape is a signed distance (negative inside) for coordinates in which it fits the unit
// circle; after Inigo Quilez, "2D distance functions", https://iquilezles.org/articles/distfunctions2d.
#include <fmt/format.h>
#include <russet/data/images.h>
#include <russet/error.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace russet::data {
namespace {

struct Point {
  double x = 0;
  double y = 0;
};

double length(Point p) { return std::sqrt(p.x * p.x + p.y * p.y); }
double dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }

double box(Point p, double width, double height) {
  const double x = std::abs(p.x) - width;
  const double y = std::abs(p.y) - height;
  return length({std::max(x, 0.0), std::max(y, 0.0)}) + std::min(std::max(x, y), 0.0);
}

double circle(Point p) { return length(p) - 0.9; }
double ring(Point p) { return std::abs(length(p) - 0.75) - 0.2; }
double square(Point p) { return box(p, 0.75, 0.75); }
double frame(Point p) { return std::abs(box(p, 0.6, 0.6)) - 0.18; }
double cross(Point p) { return std::min(box(p, 0.95, 0.28), box(p, 0.28, 0.95)); }
double crescent(Point p) { return std::max(length(p) - 0.95, 0.8 - length({p.x - 0.5, p.y})); }

double triangle(Point p) {
  const double k = std::numbers::sqrt3;
  const double side = 0.85;
  p = {std::abs(p.x) - side, side / k - p.y};
  if (p.x + k * p.y > 0) p = {(p.x - k * p.y) / 2, (-k * p.x - p.y) / 2};
  p.x -= std::clamp(p.x, -2 * side, 0.0);
  return p.y < 0 ? length(p) : -length(p);
}

double diamond(Point p) {
  const double width = 0.55;
  return (std::abs(p.x) / width + std::abs(p.y) - 1) * width / std::sqrt(1 + width * width);
}

double star(Point p) {
  const Point first{0.809016994375, -0.587785252292};
  const Point second{-first.x, first.y};
  p = {std::abs(p.x), -p.y};
  for (const Point axis : {first, second}) {
    const double across = 2 * std::max(dot(axis, p), 0.0);
    p = {p.x - across * axis.x, p.y - across * axis.y};
  }
  p = {std::abs(p.x), p.y - 1};
  const Point edge{-first.y * 0.42, first.x * 0.42 - 1};
  const double along = std::clamp(dot(p, edge) / dot(edge, edge), 0.0, 1.0);
  const double distance = length({p.x - edge.x * along, p.y - edge.y * along});
  return p.y * edge.x - p.x * edge.y < 0 ? -distance : distance;
}

double heart(Point p) {
  const double scale = 1.55;
  p = {std::abs(p.x) / scale, 0.55 - p.y / scale};
  if (p.x + p.y > 1) return (length({p.x - 0.25, p.y - 0.75}) - std::numbers::sqrt2 / 4) * scale;
  const double corner = std::max(p.x + p.y, 0.0) / 2;
  const double nearest = std::min(length({p.x, p.y - 1}), length({p.x - corner, p.y - corner}));
  return (p.x < p.y ? -nearest : nearest) * scale;
}

struct Kind {
  const char* name;
  double (*distance)(Point);
};
constexpr std::array<Kind, 10> kinds{{{"circle", circle},
                                      {"ring", ring},
                                      {"square", square},
                                      {"frame", frame},
                                      {"triangle", triangle},
                                      {"diamond", diamond},
                                      {"cross", cross},
                                      {"star", star},
                                      {"crescent", crescent},
                                      {"heart", heart}}};

using Colour = std::array<double, 3>;

Colour draw_colour(Random& random) { return {random.uniform(), random.uniform(), random.uniform()}; }

double luminance_of(const Colour& colour) { return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]; }

/// How one image looks, in units of its side.
struct Look {
  Point centre;
  double radius;
  double tilt;
  Colour shape;
  Colour left;   // of the background, on the left edge
  Colour right;  // and on the right one
};

Look draw_look(Random& random) {
  Look look{};
  look.radius = random.uniform(0.26, 0.42);
  const double room = 0.5 - look.radius * 0.85;
  look.centre = {0.5 + random.uniform(-room, room), 0.5 + random.uniform(-room, room)};
  look.tilt = random.uniform(-0.3, 0.3);
  do {  // bright on dark, so that networks for grey images can tell shapes as well
    look.shape = draw_colour(random);
    look.left = draw_colour(random);
    look.right = look.left;
    for (double& part : look.right) part = std::clamp(part + random.uniform(-0.15, 0.15), 0.0, 1.0);
  } while (luminance_of(look.shape) - std::max(luminance_of(look.left), luminance_of(look.right)) < 0.3);
  return look;
}

/// Noise in [-1, 1] for each channel, from the bytes of one word.
double noise(std::uint32_t word, int channel) { return ((word >> (8 * channel)) & 255U) / 127.5 - 1; }

}  // namespace

Shapes::Shapes(const ShapesOptions& options, Transforms transforms)
    : ImageDataset(std::move(transforms)), options_(options) {
  if (options.size < 1 || options.side < 8 || options.side > 4096) {
    throw ValueError("Shapes: at least one image, of a side between 8 and 4096");
  }
  set_image_size({options.side, options.side, 3});
}

std::int64_t Shapes::classes() const { return static_cast<std::int64_t>(kinds.size()); }

std::vector<std::string> Shapes::class_names() const {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

std::int64_t Shapes::label(std::int64_t index) const { return index % classes(); }
std::string Shapes::describe(std::int64_t index) const { return fmt::format("shape {}", index); }

void Shapes::read(std::int64_t index, Image& image) const {
  Random random(options_.seed, Random::Purpose::content, options_.test ? 1 : 0, static_cast<std::uint64_t>(index));
  const Look look = draw_look(random);
  const Kind& kind = kinds[static_cast<std::size_t>(label(index))];
  const auto side = static_cast<double>(options_.side);
  const double cosine = std::cos(look.tilt) / look.radius;
  const double sine = std::sin(look.tilt) / look.radius;
  image.resize(options_.side, options_.side, 3);
  std::uint8_t* pixel = image.pixels.data();
  for (std::int64_t row = 0; row < options_.side; ++row) {
    for (std::int64_t column = 0; column < options_.side; ++column, pixel += 3) {
      const double across = (static_cast<double>(column) + 0.5) / side;
      const Point p{across - look.centre.x, (static_cast<double>(row) + 0.5) / side - look.centre.y};
      const double distance = kind.distance({p.x * cosine - p.y * sine, p.x * sine + p.y * cosine});
      const double inside = std::clamp(0.5 - distance * look.radius * side, 0.0, 1.0);
      const std::uint32_t word = random.word();
      for (int c = 0; c < 3; ++c) {
        const auto channel = static_cast<std::size_t>(c);
        const double behind = look.left[channel] + (look.right[channel] - look.left[channel]) * across;
        const double value = behind + (look.shape[channel] - behind) * inside + 0.08 * noise(word, c);
        pixel[c] = static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0, 1.0) * 255));
      }
    }
  }
}

}  // namespace russet::data
