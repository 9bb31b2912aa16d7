#include "page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "page/page.h"

namespace russet::app {
namespace {

constexpr double chart_width = 640;
constexpr double edge = 12;
constexpr std::size_t colours = 6;  // of the style sheet

std::string colour_of(std::size_t series) { return fmt::format("s{}", series % colours); }

std::string legend_of(const std::vector<std::string>& names) {
  if (names.size() < 2) return {};
  std::string entries;
  for (std::size_t i = 0; i < names.size(); ++i) {
    entries += fmt::format("<span><i class=\"{}\">&#9632;</i>{}</span>", colour_of(i), escape_html(names[i]));
  }
  return fmt::format("<p class=\"legend\">{}</p>\n", entries);
}

std::string figure_of(const std::string& title, const std::vector<std::string>& names, double height,
                      const std::string& drawing) {
  const std::string safe = escape_html(title);
  return fmt::format(
      "<figure><figcaption>{0}</figcaption>\n{1}<svg viewBox=\"0 0 {2} {3}\" role=\"img\" aria-label=\"{0}\">\n{4}"
      "</svg></figure>\n",
      safe, legend_of(names), chart_width, height, drawing);
}

// Lines.

constexpr double plot_height = 260;
constexpr double plot_left = 64;
constexpr double plot_bottom = 30;
constexpr std::size_t most_points = 600;
constexpr std::size_t most_marked_points = 60;

using Curve = std::vector<Point>;

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

/// What can be drawn of the points.
Curve drawable(const Curve& all, const LineChart& chart) {
  Curve curve;
  std::copy_if(all.begin(), all.end(), std::back_inserter(curve), [&](Point p) {
    return std::isfinite(p.y) && (chart.y_scale == Scale::linear || p.y > 0) &&
           (chart.x_scale == Scale::linear || p.x > 0);
  });
  return thin(curve);
}

struct Plot {
  Axis x;
  Axis y;
  double place_x(double value) const { return x.at(value, plot_left, chart_width - edge); }
  double place_y(double value) const { return y.at(value, plot_height - plot_bottom, edge); }
};

/// Axes that hold all curves, of which one has a point.
Plot plot_of(const std::vector<Curve>& curves, const LineChart& chart) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Plot plot{{infinity, -infinity, chart.x_scale}, {infinity, -infinity, chart.y_scale}};
  for (const Curve& curve : curves) {
    for (const Point p : curve) {
      plot.x.low = std::min(plot.x.low, p.x);
      plot.x.high = std::max(plot.x.high, p.x);
      plot.y.low = std::min(plot.y.low, p.y);
      plot.y.high = std::max(plot.y.high, p.y);
    }
  }
  if (chart.y_scale == Scale::logarithmic) {
    plot.y.low /= 1.2;
    plot.y.high *= 1.2;
  } else {
    plot.y.low = std::min(plot.y.low, 0.0);
    plot.y.high = plot.y.high > 0 ? plot.y.high * 1.05 : plot.y.high + 1e-9;
  }
  return plot;
}

std::string axes_of(const Plot& plot, const LineChart& chart) {
  std::string svg;
  for (const double tick : plot.y.ticks()) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.6g}</text>\n",
        plot_left, chart_width - edge, plot.place_y(tick), plot.place_y(tick), plot_left - 6, plot.place_y(tick) + 4,
        tick);
  }
  for (const double tick : chart.x_ticks.empty() ? plot.x.ticks() : chart.x_ticks) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.6g}</text>\n", plot.place_x(tick),
                       plot_height - plot_bottom + 16, tick);
  }
  return svg + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", chart_width - edge,
                           plot_height - 2, escape_html(chart.x_name));
}

std::string drawing_of(const Curve& curve, const Plot& plot, const std::string& colour, const std::string& name) {
  std::string points;
  std::string marks;
  for (const Point p : curve) {
    points += fmt::format("{:.1f},{:.1f} ", plot.place_x(p.x), plot.place_y(p.y));
    if (curve.size() > most_marked_points) continue;
    marks +=
        fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{} {:g}: {:.6g}</title></circle>",
                    colour, plot.place_x(p.x), plot.place_y(p.y), escape_html(name), p.x, p.y);
  }
  return fmt::format("<polyline class=\"{}\" points=\"{}\"/>{}\n", colour, points, marks);
}

// Bars.

constexpr double bar_left = 150;
constexpr double bar_right = 70;
constexpr double bar_top = 22;
constexpr double bar_height = 13;
constexpr double group_gap = 9;

std::string vertical(std::string_view kind, double at, double bottom) {
  return fmt::format("<line class=\"{0}\" x1=\"{1:.1f}\" x2=\"{1:.1f}\" y1=\"{2}\" y2=\"{3}\"/>\n", kind, at,
                     bar_top - 4, bottom);
}

/// The bars of a group below `top`, with its name beside them.
std::string drawing_of(const BarGroup& group, const BarChart& chart, const Axis& axis, double top) {
  const double middle = top + bar_height * static_cast<double>(group.bars.size()) / 2;
  std::string svg = fmt::format("<text class=\"name\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                                bar_left - 8, middle + 4, escape_html(group.name));
  for (std::size_t i = 0; i < group.bars.size(); ++i) {
    const Bar& bar = group.bars[i];
    const double y = top + bar_height * static_cast<double>(i);
    const double end = axis.at(bar.length.value_or(0), bar_left, chart_width - bar_right);
    if (bar.length) {
      svg += fmt::format(
          "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\"><title>{}, {}: {}</title></rect>",
          colour_of(i), bar_left, y + 1, end - bar_left, bar_height - 2, escape_html(group.name),
          escape_html(chart.series[i]), escape_html(bar.label));
    }
    svg +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", end + 5, y + bar_height - 3, escape_html(bar.label));
  }
  return svg;
}

}  // namespace

std::string to_html(const LineChart& chart) {
  std::vector<Curve> curves;
  std::vector<std::string> names;
  for (const Line& line : chart.lines) {
    curves.push_back(drawable(line.points, chart));
    names.push_back(line.name);
  }
  if (std::all_of(curves.begin(), curves.end(), [](const Curve& curve) { return curve.empty(); })) return {};
  const Plot plot = plot_of(curves, chart);
  std::string drawing = axes_of(plot, chart);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const std::string name = names.size() > 1 ? fmt::format("{}, {}", names[i], chart.x_name) : chart.x_name;
    if (!curves[i].empty()) drawing += drawing_of(curves[i], plot, colour_of(i), name);
  }
  return figure_of(chart.title, names, plot_height, drawing);
}

std::string to_html(const BarChart& chart) {
  if (chart.groups.empty()) return {};
  double longest = chart.mark.value_or(0);
  double bottom = bar_top;
  for (const BarGroup& group : chart.groups) {
    for (const Bar& bar : group.bars) longest = std::max(longest, bar.length.value_or(0));
    bottom += bar_height * static_cast<double>(group.bars.size()) + group_gap;
  }
  const Axis axis{0, longest > 0 ? longest : 1};
  std::string drawing;
  for (const double tick : axis.ticks()) {
    const double at = axis.at(tick, bar_left, chart_width - bar_right);
    drawing += vertical("grid", at, bottom);
    drawing += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.6g}</text>\n", at, bar_top - 8, tick);
  }
  if (chart.mark) drawing += vertical("mark", axis.at(*chart.mark, bar_left, chart_width - bar_right), bottom);
  double top = bar_top;
  for (const BarGroup& group : chart.groups) {
    drawing += drawing_of(group, chart, axis, top);
    top += bar_height * static_cast<double>(group.bars.size()) + group_gap;
  }
  return figure_of(chart.title, chart.series, bottom + 4, drawing);
}

}  // namespace russet::app
