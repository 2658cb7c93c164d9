#include <fmt/format.h>

#include "app/export/html_parts.h"
#include "app/export/json_text.h"

namespace shardscope::exporter {

using analysis::PathPart;
using instrumentation::MemoryCategory;

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
  // A name must not end the element that it stands in.
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

const char* colour_of(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::param_shard:
    case MemoryCategory::master_weight:
      return colour::kCompute;
    case MemoryCategory::param_gathered:
    case MemoryCategory::param_secondary:
      return colour::kGather;
    case MemoryCategory::grad_full:
    case MemoryCategory::grad_shard:
      return colour::kReduce;
    case MemoryCategory::momentum:
    case MemoryCategory::variance:
      return colour::kOptimizer;
    case MemoryCategory::activation:
    case MemoryCategory::input:
      return colour::kActivation;
    case MemoryCategory::swap_buffer:
      return colour::kCopy;
    case MemoryCategory::reduce_bucket:
    case MemoryCategory::gather_buffer:
    case MemoryCategory::quantization:
    case MemoryCategory::temporary:
      return colour::kBuffer;
    case MemoryCategory::other:
      return colour::kIdle;
  }
  return colour::kIdle;
}

const char* colour_of(PathPart part) {
  switch (part) {
    case PathPart::forward:
    case PathPart::backward:
    case PathPart::compute:
      return colour::kCompute;
    case PathPart::optimizer:
    case PathPart::cpu_optimizer:
      return colour::kOptimizer;
    case PathPart::transfer:
      return colour::kGather;
    case PathPart::copy:
    case PathPart::checkpoint:
      return colour::kCopy;
    case PathPart::data:
      return colour::kWait;
    case PathPart::unrecorded:
      return colour::kUnrecorded;
    case PathPart::idle:
    case PathPart::paused:
      return colour::kIdle;
  }
  return colour::kIdle;
}

std::string bar_row(const std::string& label, const std::vector<BarPart>& parts, const std::string& figures) {
  std::string bar;
  for (const BarPart& part : parts) {
    if (part.share <= 0) continue;
    bar += fmt::format(R"(<i class={} style="width:{:.2f}%" title="{}"></i>)", part.fill, 100 * part.share,
                       escape_html(part.title));
  }
  return fmt::format(
      "<div class=row><span class=lane>{}</span><span class=figures>{}</span><span class=bar>{}"
      "</span></div>",
      escape_html(label), figures, bar);
}

std::string legend(const std::vector<std::pair<const char*, std::string>>& entries) {
  std::string out = "<p class=legend>";
  for (const auto& [fill, name] : entries) out += fmt::format("<span><i class={}></i>{}</span>", fill, name);
  return out + "</p>";
}

}  // namespace shardscope::exporter
