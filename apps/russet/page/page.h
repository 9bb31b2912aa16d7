#pragma once
// HTML pages that need nothing but themselves: no scripts, no fonts, no pictures from elsewhere.
#include <string>
#include <string_view>
#include <vector>

namespace russet::app {

/// With entities for the letters that have a meaning in HTML.
std::string escape_html(std::string_view text);

/// A whole page, light or dark as its reader likes it: `title` as its heading, and `body`, which is HTML.
std::string html_page(std::string_view title, std::string_view body);

struct Table {
  std::vector<std::string> columns;  // none: the table has no head
  /// The last cell of a row that is shorter than others spans what is left.
  std::vector<std::vector<std::string>> rows;
  /// From this column on cells hold numbers.
  std::size_t first_number = 1000;
};
/// As HTML; cells are plain text.
std::string to_html(const Table& table);

}  // namespace russet::app
