#include "app/export/html_parts.h"

namespace shardscope::exporter {

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

}  // namespace shardscope::exporter
