#include "run/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace russet::app {
namespace {

constexpr double width = 640;
constexpr double height = 260;
constexpr double left = 64;
constexpr double bottom = 30;
constexpr double margin = 12;
constexpr std::size_t most_points = 600;

struct Point {
  double x;
  double y;
};
using Curve = std::vector<Point>;

std::string escape(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += letter;
    }
  }
  return safe;
}

/// Means over neighbours where there are more points than the picture can show.
Curve thin(const Curve& curve) {
  const std::size_t run = (curve.size() + most_points - 1) / most_points;
  if (run <= 1) return curve;
  Curve thinned;
  for (std::size_t begin = 0; begin < curve.size(); begin += run) {
    const std::size_t end = std::min(begin + run, curve.size());
    Point mean{0, 0};
    for (std::size_t i = begin; i < end; ++i) {
      mean.x += curve[i].x / static_cast<double>(end - begin);
      mean.y += curve[i].y / static_cast<double>(end - begin);
    }
    thinned.push_back(mean);
  }
  return thinned;
}

struct Range {
  double low;
  double high;
  double at(double value, double from, double to) const {
    return high > low ? from + (value - low) / (high - low) * (to - from) : (from + to) / 2;
  }
};

/// Steps of 1, 2 or 5 times a power of ten, about five of them.
std::vector<double> ticks(const Range& range) {
  const double span = std::max(range.high - range.low, 1e-12);
  double step = std::pow(10.0, std::floor(std::log10(span / 5)));
  for (const double factor : {2.0, 2.5, 2.0}) {
    if (span / step > 6) step *= factor;
  }
  std::vector<double> found;
  for (double value = std::ceil(range.low / step) * step; value <= range.high + step * 1e-6; value += step) {
    found.push_back(std::abs(value) < step * 1e-6 ? 0 : value);
  }
  return found;
}

std::string axes(const Range& x, const Range& y, const std::string& x_name) {
  std::string svg;
  for (const double tick : ticks(y)) {
    const double at = y.at(tick, height - bottom, margin);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>\n",
        left, width - margin, at, at, left - 6, at + 4, tick);
  }
  for (const double tick : ticks(x)) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.6g}</text>\n",
                       x.at(tick, left, width - margin), height - bottom + 16, tick);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", width - margin, height - 2, x_name);
  return svg;
}

std::string chart(const std::string& title, const std::string& x_name, const Curve& all) {
  Curve curve;
  std::copy_if(all.begin(), all.end(), std::back_inserter(curve), [](Point p) { return std::isfinite(p.y); });
  if (curve.empty()) return {};
  curve = thin(curve);
  const auto [lowest, highest] =
      std::minmax_element(curve.begin(), curve.end(), [](Point a, Point b) { return a.y < b.y; });
  const Range y{std::min(0.0, lowest->y), highest->y > 0 ? highest->y * 1.05 : highest->y + 1e-9};
  const Range x{curve.front().x, curve.back().x};
  std::string points;
  for (const Point p : curve) {
    points += fmt::format("{:.1f},{:.1f} ", x.at(p.x, left, width - margin), y.at(p.y, height - bottom, margin));
  }
  std::string marks;
  if (curve.size() <= 60) {
    for (const Point p : curve) {
      marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{} {:g}: {:.6g}</title></circle>",
                           x.at(p.x, left, width - margin), y.at(p.y, height - bottom, margin), x_name, p.x, p.y);
    }
  }
  return fmt::format(
      "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n"
      "{}<polyline points=\"{}\"/>{}</svg></figure>\n",
      title, width, height, title, axes(x, y, x_name), points, marks);
}

constexpr std::string_view style = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 700px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.4em } figure { margin: 1.5em 0 } figcaption { font-weight: 600 }
svg { width: 100%; height: auto } svg text { font-size: 11px; fill: #666 }
.grid { stroke: #ddd } polyline { fill: none; stroke: #b5482a; stroke-width: 2 } circle { fill: #b5482a }
table { border-collapse: collapse } td { border-top: 1px solid #ddd; padding: .25em 1em .25em 0; vertical-align: top }
td:first-child { color: #666 } td:last-child { overflow-wrap: anywhere }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } .grid, td { stroke: #444; border-color: #444 } }
)";

}  // namespace

std::string to_html(const Report& report) {
  Curve loss;
  Curve rate;
  Curve accuracy;
  Curve test_loss;
  for (const StepRecord& step : report.history.steps) {
    loss.push_back({static_cast<double>(step.step), step.loss});
    rate.push_back({static_cast<double>(step.step), step.lr});
  }
  for (const EpochRecord& epoch : report.history.epochs) {
    if (epoch.accuracy) accuracy.push_back({static_cast<double>(epoch.epoch), *epoch.accuracy * 100});
    if (epoch.test_loss) test_loss.push_back({static_cast<double>(epoch.epoch), *epoch.test_loss});
  }
  std::string rows;
  for (const auto& [name, value] : report.facts) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escape(name), escape(value));
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title>\n<style>{1}</style></head>\n"
      "<body><h1>{0}</h1>\n{2}{3}{4}{5}<table>\n{6}</table></body></html>\n",
      escape(report.title), style, chart("Training loss", "step", loss),
      chart("Accuracy on the evaluation part, %", "epoch", accuracy),
      chart("Loss on the evaluation part", "epoch", test_loss), chart("Learning rate", "step", rate), rows);
}

}  // namespace russet::app
