#include "run/report.h"

#include "page/chart.h"
#include "page/page.h"

namespace russet::app {
namespace {

std::string curve_of(const std::string& title, const std::string& x_name, std::vector<Point> points) {
  return to_html(LineChart{.title = title, .x_name = x_name, .lines = {{title, std::move(points)}}});
}

}  // namespace

std::string to_html(const Report& report) {
  std::vector<Point> loss;
  std::vector<Point> rate;
  std::vector<Point> accuracy;
  std::vector<Point> test_loss;
  for (const StepRecord& step : report.history.steps) {
    loss.push_back({static_cast<double>(step.step), step.loss});
    rate.push_back({static_cast<double>(step.step), step.lr});
  }
  for (const EpochRecord& epoch : report.history.epochs) {
    if (epoch.accuracy) accuracy.push_back({static_cast<double>(epoch.epoch), *epoch.accuracy * 100});
    if (epoch.test_loss) test_loss.push_back({static_cast<double>(epoch.epoch), *epoch.test_loss});
  }
  Table facts;
  for (const auto& [name, value] : report.facts) facts.rows.push_back({name, value});
  return html_page(report.title, curve_of("Training loss", "step", loss) +
                                     curve_of("Accuracy on the evaluation part, %", "epoch", accuracy) +
                                     curve_of("Loss on the evaluation part", "epoch", test_loss) +
                                     curve_of("Learning rate", "step", rate) + to_html(facts));
}

}  // namespace russet::app
