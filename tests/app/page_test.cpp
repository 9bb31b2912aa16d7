// Pages and charts: what they escape, where points and bars lie, and what is left out.
#include "page/page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <sstream>

#include "page/chart.h"

namespace russet::app {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// What the first group of the pattern finds, in order.
std::vector<std::string> all(const std::string& html, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator it(html.begin(), html.end(), regex), end; it != end; ++it) found.push_back((*it)[1]);
  return found;
}

std::vector<double> numbers(const std::string& html, const std::string& pattern) {
  std::vector<double> found;
  for (const std::string& text : all(html, pattern)) found.push_back(std::stod(text));
  return found;
}

/// Of the polylines of a page.
std::vector<std::vector<Point>> curves(const std::string& html) {
  std::vector<std::vector<Point>> found;
  for (const std::string& points : all(html, "points=\"([^\"]*)\"")) {
    std::istringstream stream(points);
    std::vector<Point> curve;
    Point p{};
    for (char comma = 0; stream >> p.x >> comma >> p.y;) curve.push_back(p);
    found.push_back(std::move(curve));
  }
  return found;
}

TEST(Page, TextIsEscaped) {
  EXPECT_EQ(escape_html("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  const std::string odd = "<script>";
  const std::string html =
      html_page(odd, to_html(Table{{odd}, {{odd}}}) + to_html(LineChart{odd, odd, {{odd, {{1, 1}}}, {odd, {{1, 2}}}}}) +
                         to_html(BarChart{odd, {odd, odd}, {{odd, {{1, odd}, {{}, odd}}}}}));
  EXPECT_EQ(html.find(odd), std::string::npos);
  EXPECT_GT(all(html, "(&lt;script&gt;)").size(), 10U);
}

TEST(Page, AShortRowSpansTheTable) {
  const std::string html = to_html(Table{{"a", "b", "c"}, {{"1", "2", "3"}, {"1", "failed"}}, 1});
  EXPECT_EQ(all(html, "colspan=\"(\\d)\""), std::vector<std::string>{"2"});
  EXPECT_EQ(all(html, "<td class=\"number\">(\\d)").size(), 2U);
}

TEST(Axis, EndsAndMiddle) {
  EXPECT_DOUBLE_EQ((Axis{2, 6}.at(3, 100, 200)), 125);
  EXPECT_DOUBLE_EQ((Axis{1, 64, Scale::logarithmic}.at(8, 100, 200)), 150);
  EXPECT_DOUBLE_EQ((Axis{1, 64, Scale::logarithmic}.at(64, 200, 100)), 100);
  EXPECT_DOUBLE_EQ((Axis{3, 3}.at(3, 100, 200)), 150);
}

TEST(Axis, TicksAreFewAndRound) {
  for (const Scale scale : {Scale::linear, Scale::logarithmic}) {
    for (const double low : {1e-4, 0.3, 1.0, 25.0}) {
      for (const double span : {1.5, 7.0, 120.0, 1e5}) {
        const Axis axis{low, low * span, scale};
        const std::vector<double> ticks = axis.ticks();
        EXPECT_LE(ticks.size(), 9U) << low << " " << span;
        EXPECT_GE(ticks.size(), span > 5 ? 2U : 0U) << low << " " << span;
        for (const double tick : ticks) {
          EXPECT_GE(tick, axis.low * (1 - 1e-6));
          EXPECT_LE(tick, axis.high * (1 + 1e-6));
        }
        if (scale == Scale::linear) continue;
        for (const double tick : ticks) {
          const double digit = tick / std::pow(10.0, std::floor(std::log10(tick) + 1e-9));
          EXPECT_TRUE(std::abs(digit - 1) < 1e-6 || std::abs(digit - 2) < 1e-6 || std::abs(digit - 5) < 1e-6) << tick;
        }
      }
    }
  }
}

TEST(LineChart, PointsLieByTheirValues) {
  LineChart chart{"t", "x", {{"a", {{0, 0}, {1, 5}, {2, 10}}}, {"b", {{0, 10}, {2, 0}}}}};
  const auto linear = curves(to_html(chart));
  ASSERT_EQ(linear.size(), 2U);
  EXPECT_NEAR(linear[0][1].x - linear[0][0].x, linear[0][2].x - linear[0][1].x, 0.11);
  EXPECT_NEAR(linear[0][1].y - linear[0][0].y, linear[0][2].y - linear[0][1].y, 0.11);
  EXPECT_LT(linear[0][2].y, linear[0][0].y);  // upwards
  EXPECT_EQ(linear[1][0].y, linear[0][2].y);
  EXPECT_EQ(linear[1][1].x, linear[0][2].x);

  chart.lines = {{"a", {{1, 1}, {8, 10}, {64, 100}}}};
  chart.x_scale = chart.y_scale = Scale::logarithmic;
  const auto logarithmic = curves(to_html(chart));
  EXPECT_NEAR(logarithmic[0][1].x - logarithmic[0][0].x, logarithmic[0][2].x - logarithmic[0][1].x, 0.11);
  EXPECT_NEAR(logarithmic[0][1].y - logarithmic[0][0].y, logarithmic[0][2].y - logarithmic[0][1].y, 0.11);
}

TEST(LineChart, WhatIsNotFiniteIsLeftOut) {
  LineChart chart{"t", "x", {{"a", {{1, nan}, {2, 3}, {3, infinity}, {4, 1}}}}};
  EXPECT_EQ(curves(to_html(chart))[0].size(), 2U);
  chart.y_scale = Scale::logarithmic;
  chart.lines[0].points.push_back({5, 0});
  EXPECT_EQ(curves(to_html(chart))[0].size(), 2U);
  chart.lines = {{"a", {{1, nan}}}, {"b", {}}};
  EXPECT_EQ(to_html(chart), "");
}

TEST(LineChart, ManyPointsBecomeMeans) {
  LineChart chart{"t", "x", {{"a", {}}, {"b", {{0, 0}, {4999, 2}}}}};
  for (int i = 0; i < 5000; ++i) chart.lines[0].points.push_back({static_cast<double>(i), i % 2 == 0 ? 0.0 : 2.0});
  const auto drawn = curves(to_html(chart));
  EXPECT_LE(drawn[0].size(), 600U);
  const double middle = (drawn[1][0].y + drawn[1][1].y) / 2;
  const double height = std::abs(drawn[1][0].y - drawn[1][1].y);
  // A mean of nine points has one more of one value than of the other; the last one may be of fewer.
  for (std::size_t i = 0; i + 1 < drawn[0].size(); ++i) EXPECT_NEAR(drawn[0][i].y, middle, 0.06 * height);
}

TEST(BarChart, BarsAreAsLongAsTheirValues) {
  const BarChart chart{"t", {"a", "b"}, {{"m", {{2, "2x"}, {0.5, "0.5x"}}}, {"n", {{{}, "failed"}, {4, "4x"}}}}, 1};
  const std::string html = to_html(chart);
  const std::vector<double> widths = numbers(html, "<rect[^>]* width=\"([^\"]*)\"");
  ASSERT_EQ(widths.size(), 3U);
  EXPECT_NEAR(widths[0] / widths[2], 0.5, 1e-3);
  EXPECT_NEAR(widths[1] / widths[2], 0.125, 1e-3);
  const double start = numbers(html, "<rect[^>]* x=\"([^\"]*)\"")[0];
  EXPECT_NEAR(numbers(html, "class=\"mark\" x1=\"([^\"]*)\"")[0], start + widths[2] / 4, 0.06);
  EXPECT_EQ(all(html, ">(failed|4x)<").size(), 2U);
  EXPECT_EQ(to_html(BarChart{"t", {"a"}, {}}), "");
}

}  // namespace
}  // namespace russet::app
