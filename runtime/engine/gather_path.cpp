#include "runtime/engine/gather_path.h"

#include <vector>

namespace shardscope::engine {

GatherPath::GatherPath(const Context& context, const plan::Ownership& ownership)
    : context_(context), ownership_(ownership) {}

void GatherPath::gather(std::span<const Part> parts, comm::CollectiveLabel label) {
  device::Stream& stream = context_.device.gather();
  std::vector<comm::GatherPart> pieces;
  pieces.reserve(parts.size());
  for (const Part& part : parts) {
    const plan::ParamPartition& partition = ownership_.shards().partitions[plan::raw(part.param)];
    pieces.push_back({part.shard, part.whole, partition.shard_elems, plan::raw(part.param)});
  }
  if (context_.config.zero.allgather_sequential) {
    for (const comm::GatherPart& piece : pieces) {
      context_.gather_comm.all_gather({&piece, 1}, context_.type(), stream, label);
    }
  } else {
    context_.gather_comm.all_gather(pieces, context_.type(), stream, label);
  }
}

}  // namespace shardscope::engine
