#include "runtime/plan/auto_sizes.h"

namespace shardscope::plan {

std::int64_t embedding_width(const NodeSpec& node) {
  if (node.kind == NodeKind::embedding) return node.out;
  for (const NodeSpec& child : node.children) {
    if (const std::int64_t width = embedding_width(child); width > 0) return width;
  }
  return 0;
}

}  // namespace shardscope::plan
