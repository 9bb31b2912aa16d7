#include "bench/bench_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "page/chart.h"
#include "page/page.h"

namespace russet::app {
namespace {

using Measurements = std::vector<Measurement>;

std::string series_of(const BenchCase& what) { return fmt::format("{}, {}", what.device, what.precision); }

std::string phase_name(const std::string& phase) { return phase == "train" ? "training" : "evaluation"; }

/// What `part` finds in the measurements, each once, in the order in which it comes.
template <class Part>
auto distinct(const Measurements& measurements, const Part& part) {
  std::vector<std::decay_t<std::invoke_result_t<Part, const Measurement&>>> found;
  for (const Measurement& each : measurements) {
    if (std::find(found.begin(), found.end(), part(each)) == found.end()) found.push_back(part(each));
  }
  return found;
}

Measurements those(const Measurements& measurements, const std::function<bool(const Measurement&)>& condition) {
  Measurements found;
  std::copy_if(measurements.begin(), measurements.end(), std::back_inserter(found), condition);
  return found;
}

std::vector<std::string> models_in(const Measurements& all) {
  return distinct(all, [](const Measurement& each) { return each.what.model; });
}
std::vector<std::string> phases_in(const Measurements& all) {
  return distinct(all, [](const Measurement& each) { return each.what.phase; });
}
std::vector<std::string> series_in(const Measurements& all) {
  return distinct(all, [](const Measurement& each) { return series_of(each.what); });
}

Bar bar_of(const Measurements& measurements, const std::string& model, const std::string& series) {
  for (const Measurement& each : measurements) {
    if (each.what.model != model || series_of(each.what) != series) continue;
    if (!each.times) return {{}, "failed"};
    if (!each.speedup) return {{}, "no baseline"};
    return {each.speedup, fmt::format("{:.2f}\u00d7", *each.speedup)};
  }
  return {{}, ""};
}

/// A bar for each model and each series but the baseline, which is the line at 1; if it is alone, it has bars.
std::string speedups_of(const BenchPage& page, const std::string& phase) {
  const Measurements measured =
      those(page.measurements, [&](const Measurement& each) { return each.what.phase == phase; });
  const std::string baseline = fmt::format("{}, {}", page.baseline_device, page.baseline_precision);
  BarChart chart;
  chart.title = fmt::format("Speed-up of {} over {}, in samples a second", phase_name(phase), baseline);
  chart.mark = 1;
  chart.series = series_in(measured);
  if (chart.series.size() > 1) std::erase(chart.series, baseline);
  if (chart.series.size() == 1) chart.title += ": " + chart.series[0];
  for (const std::string& model : models_in(measured)) {
    BarGroup group{model, {}};
    for (const std::string& series : chart.series) group.bars.push_back(bar_of(measured, model, series));
    chart.groups.push_back(std::move(group));
  }
  return to_html(chart);
}

/// `value` by the size of the batch.
LineChart curves_of(const Measurements& measurements, const std::string& title,
                    const std::function<double(const BenchTimes&)>& value) {
  LineChart chart;
  chart.title = title;
  chart.x_name = "batch";
  chart.x_scale = Scale::logarithmic;
  for (const std::string& series : series_in(measurements)) {
    Line line{series, {}};
    for (const Measurement& each : measurements) {
      if (!each.times || series_of(each.what) != series) continue;
      line.points.push_back({static_cast<double>(each.what.batch), value(*each.times)});
    }
    std::sort(line.points.begin(), line.points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    chart.lines.push_back(std::move(line));
  }
  for (const Measurement& each : measurements) {
    const auto batch = static_cast<double>(each.what.batch);
    if (std::find(chart.x_ticks.begin(), chart.x_ticks.end(), batch) == chart.x_ticks.end() && each.times) {
      chart.x_ticks.push_back(batch);
    }
  }
  return chart;
}

std::string curves_of(const Measurements& all, const std::string& model, const std::string& phase) {
  const Measurements measured =
      those(all, [&](const Measurement& each) { return each.what.model == model && each.what.phase == phase; });
  if (measured.empty()) return {};
  const std::string name = fmt::format("{}, {}", model, phase_name(phase));
  LineChart seconds =
      curves_of(measured, name + ": seconds a step", [](const BenchTimes& t) { return t.median_ms * 1e-3; });
  seconds.y_scale = Scale::logarithmic;
  return to_html(seconds) +
         to_html(curves_of(measured, name + ": samples a second", [](const BenchTimes& t) { return t.samples_per_s; }));
}

std::vector<std::string> cells_of(const Measurement& measurement, bool with_speedup) {
  const BenchCase& what = measurement.what;
  std::vector<std::string> cells{what.model, phase_name(what.phase), what.device, what.precision,
                                 fmt::format("{}", what.batch)};
  if (!measurement.times) {
    cells.push_back(measurement.error);
    return cells;
  }
  const BenchTimes& times = *measurement.times;
  cells.push_back(fmt::format("{:.3f}", times.median_ms));
  cells.push_back(fmt::format("{:.1f}", times.samples_per_s));
  if (with_speedup) cells.push_back(measurement.speedup ? fmt::format("{:.2f}", *measurement.speedup) : "");
  cells.push_back(format_size(times.peak_bytes));
  cells.push_back(fmt::format("{}", times.kernels));
  cells.push_back(fmt::format("{:.1f} %", times.utilisation * 100));
  return cells;
}

std::string table_of(const BenchPage& page) {
  const bool with_speedup = page.picture == BenchPage::Picture::speedups;
  Table table{{"model", "phase", "device", "precision", "batch", "ms", "samples/s"}, {}, 4};
  if (with_speedup) table.columns.emplace_back("speed-up");
  for (const char* column : {"peak memory", "kernels", "of peak"}) table.columns.emplace_back(column);
  for (const Measurement& each : page.measurements) table.rows.push_back(cells_of(each, with_speedup));
  return to_html(table);
}

}  // namespace

std::string to_html(const BenchPage& page) {
  std::string body;
  if (page.picture == BenchPage::Picture::speedups) {
    for (const std::string& phase : phases_in(page.measurements)) body += speedups_of(page, phase);
  } else {
    for (const std::string& model : models_in(page.measurements)) {
      for (const std::string& phase : phases_in(page.measurements)) body += curves_of(page.measurements, model, phase);
    }
  }
  body += "<h2>Measurements</h2>\n" + table_of(page);
  body +=
      "<p>ms: the median step. Peak memory: what tensors and temporaries took on the device. Of peak: the share of "
      "the operations a second that a large matrix product does here.</p>\n";
  Table facts;
  for (const auto& [name, value] : page.facts) facts.rows.push_back({name, value});
  return html_page(page.title, body + "<h2>Machine</h2>\n" + to_html(facts));
}

}  // namespace russet::app
