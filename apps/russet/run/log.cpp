#include "run/log.h"

#include <fmt/format.h>
#include <russet/error.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace russet::app {
namespace {

using nlohmann::ordered_json;

double number(const ordered_json& record, const char* key) {
  const auto found = record.find(key);
  return found == record.end() || found->is_null() ? std::numeric_limits<double>::quiet_NaN() : found->get<double>();
}

std::optional<double> maybe(const ordered_json& record, const char* key) {
  const double value = number(record, key);
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

}  // namespace

void Log::add(const StepRecord& record) {
  file_.add(
      ordered_json{
          {"step", record.step}, {"loss", record.loss}, {"lr", record.lr}, {"ms", std::round(record.ms * 1000) / 1000}}
          .dump() +
      "\n");
}

void Log::add(const EpochRecord& record) {
  ordered_json line{{"epoch", record.epoch}, {"loss", record.loss}, {"accuracy", nullptr}};
  if (record.accuracy) line["accuracy"] = *record.accuracy;
  if (record.test_loss) line["test_loss"] = *record.test_loss;
  file_.add(line.dump() + "\n");
}

History read_log(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw FileError(fmt::format("{}: it cannot be read", path.string()));
  History history;
  std::string line;
  for (int count = 1; std::getline(file, line); ++count) {
    try {
      const ordered_json record = ordered_json::parse(line);
      if (record.contains("step")) {
        history.steps.push_back({record.at("step").get<std::int64_t>(), number(record, "loss"), number(record, "lr"),
                                 number(record, "ms")});
      } else {
        history.epochs.push_back({record.at("epoch").get<std::int64_t>(), number(record, "loss"),
                                  maybe(record, "accuracy"), maybe(record, "test_loss")});
      }
    } catch (const nlohmann::json::exception&) {
      throw FileError(fmt::format("{}: line {} is no record of a step or an epoch", path.string(), count));
    }
  }
  return history;
}

}  // namespace russet::app
