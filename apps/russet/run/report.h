#pragma once
// The report of a run: one HTML page that needs nothing but itself.
#include <string>
#include <utility>
#include <vector>

#include "run/log.h"

namespace russet::app {

struct Report {
  std::string title;
  History history;
  /// Lines of the table below the curves: options, versions.
  std::vector<std::pair<std::string, std::string>> facts;
};

/// Loss by step, accuracy by epoch and learning rate as SVG, and the table of facts.
std::string to_html(const Report& report);

}  // namespace russet::app
