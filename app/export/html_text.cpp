#include <fmt/format.h>

#include "app/export/html_parts.h"
#include "app/export/json_text.h"

namespace shardscope::exporter {

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void append_script_json(std::string& out, std::string_view text) {
  std::string quoted;
  append_json(quoted, text);
  // "</script>" in a name must not close the script element.
  for (const char c : quoted) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
}

std::string number(const std::optional<double>& value, const char* format, const char* unit) {
  return value ? fmt::format(fmt::runtime(format), *value) + unit : std::string("—");
}

std::string scrolling(const std::string& table, const char* name) {
  return fmt::format(R"(<div class=scroll tabindex=0 role=region aria-label="{}">{}</div>)", name, table);
}

std::string folded(const std::string& table, std::size_t rows, const std::string& what) {
  if (rows <= kManyRanks) return table;
  return fmt::format("<details><summary>{}</summary>{}</details>", escape_html(what), table);
}

}  // namespace shardscope::exporter
