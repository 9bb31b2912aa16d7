#include "page/page.h"

#include <fmt/format.h>

#include <algorithm>

namespace russet::app {
namespace {

// s0, s1, ...: the colours of a chart's series (page/chart.cpp).
constexpr std::string_view style = R"(
:root { color-scheme: light dark; --text: #222; --back: #fff; --muted: #595959; --line: #ddd }
.s0 { --series: #b5482a } .s1 { --series: #2a73b5 } .s2 { --series: #2f8a4e }
.s3 { --series: #8453b3 } .s4 { --series: #a87410 } .s5 { --series: #5b6b7b }
@media (prefers-color-scheme: dark) {
  :root { --text: #ddd; --back: #181818; --muted: #a6a6a6; --line: #444 }
  .s0 { --series: #e58a68 } .s1 { --series: #6cb0ea } .s2 { --series: #6cc78c }
  .s3 { --series: #bd97e3 } .s4 { --series: #e0b04a } .s5 { --series: #a3b2c1 }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 760px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.4em } h2 { font-size: 1.15em; margin-top: 2em } figure { margin: 1.5em 0 } figcaption { font-weight: 600 }
svg { width: 100%; height: auto } svg text { font-size: 11px; fill: var(--muted); stroke: var(--back); stroke-width: 3px; paint-order: stroke } svg text.name { fill: var(--text) }
.grid { stroke: var(--line) } .mark { stroke: var(--text); stroke-dasharray: 4 3 }
polyline { fill: none; stroke: var(--series); stroke-width: 2 } circle, rect { fill: var(--series) }
.legend { margin: .2em 0; color: var(--muted); font-size: 13px } .legend i { color: var(--series); font-style: normal; padding-right: .3em }
.legend span { padding-right: 1.2em } .wide { overflow-x: auto } table { border-collapse: collapse; font-size: 14px }
th { text-align: left; padding: .25em 1em .25em 0; color: var(--muted); font-weight: 600 }
td { border-top: 1px solid var(--line); padding: .25em 1em .25em 0; vertical-align: top; overflow-wrap: anywhere }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
)";

std::string cell_of(std::string_view element, std::string_view text, std::string_view attributes) {
  return fmt::format("<{0}{1}>{2}</{0}>", element, attributes, escape_html(text));
}

std::string row_of(const std::vector<std::string>& cells, std::string_view element, std::size_t columns,
                   std::size_t first_number) {
  std::string row = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string attributes;
    if (i + 1 == cells.size() && cells.size() < columns) {
      attributes = fmt::format(" colspan=\"{}\"", columns - i);
    } else if (i >= first_number) {
      attributes = " class=\"number\"";
    }
    row += cell_of(element, cells[i], attributes);
  }
  return row + "</tr>\n";
}

}  // namespace

std::string escape_html(std::string_view text) {
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

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title>\n<style>{1}</style></head>\n"
      "<body><h1>{0}</h1>\n{2}</body></html>\n",
      escape_html(title), style, body);
}

std::string to_html(const Table& table) {
  std::size_t columns = table.columns.size();
  for (const auto& row : table.rows) columns = std::max(columns, row.size());
  std::string rows;
  if (!table.columns.empty()) rows += row_of(table.columns, "th", columns, table.first_number);
  for (const auto& row : table.rows) rows += row_of(row, "td", columns, table.first_number);
  return fmt::format("<div class=\"wide\"><table>\n{}</table></div>\n", rows);
}

}  // namespace russet::app
