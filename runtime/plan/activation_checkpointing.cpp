#include "runtime/plan/activation_checkpointing.h"

namespace shardscope::plan {
namespace {

std::size_t mark_below(NodeSpec& node) {
  std::size_t marked = 0;
  for (NodeSpec& child : node.children) {
    if (node.kind == NodeKind::list && child.kind == NodeKind::sequential) {
      child.checkpoint = true;
      ++marked;
    } else {
      marked += mark_below(child);
    }
  }
  return marked;
}

}  // namespace

std::size_t checkpoint_blocks(ModelSpec& spec) { return mark_below(spec.root); }

}  // namespace shardscope::plan
