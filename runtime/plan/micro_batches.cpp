#include "runtime/plan/micro_batches.h"

namespace shardscope::plan {

std::string validate(const MicroBatches& sizes, const ModelSpec& model, std::int64_t context) {
  const bool tokens = model.input == InputKind::tokens;
  if (!tokens && sizes.packing != Packing::fixed) {
    return "shardscope.micro_batches.packing: model " + model.name +
           " reads vectors, not documents; use \"fixed\"";
  }
  for (std::size_t i = 0; i < sizes.shapes.size(); ++i) {
    const std::int64_t length = sizes.shapes[i].tokens;
    if (length <= (tokens ? context : 1)) continue;
    return "shardscope.micro_batches.shapes[" + std::to_string(i) + "]: samples of " +
           std::to_string(length) + " tokens " +
           (tokens ? "do not fit the context of " + std::to_string(context)
                   : "are for models of tokens; write 1 for the vectors of " + model.name);
  }
  return {};
}

}  // namespace shardscope::plan
