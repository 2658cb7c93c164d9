// Colours of the page, bars and their legend.
#include <fmt/format.h>

#include "app/export/html_parts.h"

namespace shardscope::exporter {

using analysis::PathPart;
using instrumentation::MemoryCategory;

const char* colour_of(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::param_shard:
    case MemoryCategory::param_secondary:
      return colour::kCompute;
    case MemoryCategory::param_gathered:
      return colour::kGather;
    case MemoryCategory::grad_full:
    case MemoryCategory::grad_shard:
      return colour::kReduce;
    case MemoryCategory::master_weight:
    case MemoryCategory::momentum:
    case MemoryCategory::variance:
      return colour::kOptimizer;
    case MemoryCategory::activation:
      return colour::kActivation;
    case MemoryCategory::swap_buffer:
      return colour::kCopy;
    case MemoryCategory::reduce_bucket:
    case MemoryCategory::gather_buffer:
    case MemoryCategory::quantization:
      return colour::kBuffer;
    case MemoryCategory::input:
    case MemoryCategory::temporary:
    case MemoryCategory::other:
      return colour::kIdle;
  }
  return colour::kIdle;
}

const char* colour_of(Hue hue) {
  switch (hue) {
    case Hue::compute:
      return colour::kCompute;
    case Hue::gather:
      return colour::kGather;
    case Hue::reduce:
      return colour::kReduce;
    case Hue::optimizer:
      return colour::kOptimizer;
    case Hue::copy:
      return colour::kCopy;
    case Hue::wait:
      return colour::kWait;
    case Hue::idle:
    case Hue::pause:
      return colour::kIdle;
    case Hue::unrecorded:
      return colour::kUnrecorded;
  }
  return colour::kIdle;
}

Hue hue_of(store::SpanHue hue) {
  switch (hue) {
    case store::SpanHue::compute:
      return Hue::compute;
    case store::SpanHue::gather:
      return Hue::gather;
    case store::SpanHue::reduce:
      return Hue::reduce;
    case store::SpanHue::optimizer:
      return Hue::optimizer;
    case store::SpanHue::copy:
      return Hue::copy;
    case store::SpanHue::wait:
      return Hue::wait;
    case store::SpanHue::neutral:
      break;
  }
  return Hue::idle;
}

Hue hue_of(PathPart part) {
  switch (part) {
    case PathPart::forward:
    case PathPart::backward:
    case PathPart::compute:
      return Hue::compute;
    case PathPart::optimizer:
    case PathPart::cpu_optimizer:
      return Hue::optimizer;
    case PathPart::transfer:
      return Hue::gather;
    case PathPart::copy:
    case PathPart::checkpoint:
      return Hue::copy;
    case PathPart::data:
      return Hue::wait;
    case PathPart::paused:
      return Hue::pause;
    case PathPart::unrecorded:
      return Hue::unrecorded;
    case PathPart::idle:
      return Hue::idle;
  }
  return Hue::idle;
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
