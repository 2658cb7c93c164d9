// Saving and resuming a run: the collective part around the files of runtime/checkpoint.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/data/stream.h"
#include "runtime/engine/engine.h"
#include "runtime/execution/context.h"

namespace shardscope::train {

struct SaveOptions {
  std::string folder;      ///< of all checkpoints of the run; accessible to every rank
  std::int64_t keep = 0;   ///< number of newest checkpoints to keep; 0: all
  std::uint64_t seed = 0;  ///< of the data's order
};

/// Saves the run between two steps to folder/step-N and makes it the latest. Each rank writes its owned
/// range, a bounded piece in memory at a time. Returns the checkpoint's folder once it is on the disk. Throws
/// CheckpointError on the rank that failed (a full disk, ...), after removing the partial folder, with
/// earlier checkpoints untouched; the other ranks throw the communicator's error. Collective.
std::string save_checkpoint(const execution::Context& context, engine::Engine& engine,
                            const data::BatchStream& stream, const SaveOptions& options);

/// Restores `engine` and `stream` from a checkpoint of any world and stage: each rank reads its owned range.
/// `stream` must have been opened with the checkpoint's seed. Throws CheckpointError (damaged, of another
/// model) and data::DataError (other data). Collective.
void load_checkpoint(const execution::Context& context, engine::Engine& engine, data::BatchStream& stream,
                     const checkpoint::CheckpointReader& reader);

/// The differences between the configuration of a checkpoint and that of the resumed run, as text:
/// "zero_optimization.stage 3 -> 1, ..."; empty if none.
[[nodiscard]] std::string changed_settings(const std::string& saved_json, const std::string& json);

}  // namespace shardscope::train
