// Saving and continuing a run: what every rank does together around the files of runtime/checkpoint.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/data/stream.h"
#include "runtime/engine/engine.h"
#include "runtime/execution/context.h"

namespace shardscope::train {

struct SaveOptions {
  std::string folder;      ///< of all checkpoints of the run, seen by every rank
  std::int64_t keep = 0;   ///< newest checkpoints that stay; 0: all
  std::uint64_t seed = 0;  ///< of the data's order
};

/// Saves the run as it stands between two steps to folder/step-N and makes it the latest. Each rank writes
/// what it owns, a bounded piece in memory at a time. Returns the checkpoint's folder once it is on the disk.
/// Throws CheckpointError on the rank that failed (a full disk, ...), after the partial folder is gone and
/// with the checkpoints before untouched; the other ranks throw what the communicator says. Collective.
std::string save_checkpoint(const execution::Context& context, engine::Engine& engine,
                            const data::BatchStream& stream, const SaveOptions& options);

/// Continues `engine` and `stream` from a checkpoint of any world and stage: each rank reads what it owns.
/// `stream` was opened with the checkpoint's seed. Throws CheckpointError (damaged, of another model) and
/// data::DataError (other data). Collective.
void load_checkpoint(const execution::Context& context, engine::Engine& engine, data::BatchStream& stream,
                     const checkpoint::CheckpointReader& reader);

/// What differs between the configuration of a checkpoint and the one it is continued with, for people:
/// "zero_optimization.stage 3 -> 1, ..."; "" when nothing does.
[[nodiscard]] std::string changed_settings(const std::string& saved_json, const std::string& json);

}  // namespace shardscope::train
