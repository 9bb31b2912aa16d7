#pragma once
// Charts as figures of a page (page/page.h): inline SVG.
#include <optional>
#include <string>
#include <vector>

#include "page/axis.h"

namespace russet::app {

struct Point {
  double x;
  double y;
};

struct Line {
  std::string name;           // in the legend
  std::vector<Point> points;  // with growing x; points that are not finite are left out
};

struct LineChart {
  std::string title;
  std::string x_name;
  std::vector<Line> lines;
  Scale x_scale = Scale::linear;
  Scale y_scale = Scale::linear;
  /// Where the x axis is labelled; none: at round numbers.
  std::vector<double> x_ticks{};
};
/// Empty if there is no point to draw. A linear y axis begins at 0, or below.
std::string to_html(const LineChart& chart);

struct Bar {
  std::optional<double> length;  // at least 0; nothing: the label alone
  std::string label;             // at its end
};

struct BarGroup {
  std::string name;
  std::vector<Bar> bars;  // one a series
};

/// Lying bars that begin at 0.
struct BarChart {
  std::string title;
  std::vector<std::string> series;
  std::vector<BarGroup> groups;
  std::optional<double> mark{};  // a line behind all bars
};
/// Empty if there is no group.
std::string to_html(const BarChart& chart);

}  // namespace russet::app
