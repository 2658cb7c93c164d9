// Read and write access to stored shards between steps (checkpoints, weights): always in the storage type,
// even if they are stored quantized.
#pragma once

#include "runtime/execution/context.h"
#include "runtime/offload/shard_store.h"
#include "runtime/optim/param_sink.h"
#include "runtime/plan/ownership.h"
#include "runtime/plan/quantization.h"

namespace shardscope::engine {

/// All arguments must outlive it. One shard is open at a time.
class StoredShards {
 public:
  StoredShards(const execution::Context& context, const plan::Ownership& ownership,
               offload::ShardStore& shards)
      : context_(context), ownership_(ownership), shards_(shards) {}

  /// The shard of `param` in the storage type, until close(), for work on the returned part's stream.
  [[nodiscard]] optim::StoredPart open(plan::ParamId param);
  void close(plan::ParamId param, optim::PartUse use);
  /// Quantizes the shard that was set last. Call before shards are read in any other way.
  void finish();

 private:
  /// A quantized shard that is open. It is quantized once, when all of it is set: with each piece, a group
  /// would be rounded again.
  struct Unpacked {
    plan::ParamId param = plan::kNone<plan::ParamId>;
    device::Buffer values;  ///< [elements of the shard], storage type
    bool changed = false;
  };

  [[nodiscard]] optim::StoredPart open_stored(plan::ParamId param);
  void close_stored(plan::ParamId param, optim::PartUse use);
  [[nodiscard]] plan::PackedShard packed(plan::ParamId param) const;
  void unpack(plan::ParamId param, const optim::StoredPart& part);

  const execution::Context& context_;
  const plan::Ownership& ownership_;
  offload::ShardStore& shards_;
  Unpacked unpacked_;
};

}  // namespace shardscope::engine
