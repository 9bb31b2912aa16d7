#pragma once
// Column sums of an epilogue whose visitor takes four rows at a time (RowsVisitor): a lane has the same columns in all
// calls, and keeps a sum of each.
#include <string>

#include "device/gpu/templates/epilogue.h"

namespace russet::gpu {

/// What such a visitor has besides, as text.
class RowSums {
 public:
  /// `width`: columns of a lane. Keeps `sums`.
  RowSums(const EpilogueSums& sums, int width) : sums_(sums), width_(width) {}

  /// Adds an element of row "ahead" of those that are shown, column "k" if there are several.
  void add(KernelText& kernel, const Reduction& reduction, const std::string& value) const;
  std::string members() const;
  /// What happens when a visitor starts.
  std::string start() const;
  /// Of the function that is shown the rows, each with a comma behind it.
  std::string parameters() const;
  std::string arguments() const;
  /// end_block() and finish(part, column, end column, lane), which stores a part of each column.
  std::string methods(const Partials& partials) const;

 private:
  /// Calls visit(type, name, what it begins with) for each array that a visitor has.
  template <class Visitor>
  void for_each_array(const Visitor& visit) const;

  const EpilogueSums& sums_;
  int width_;
};

}  // namespace russet::gpu
