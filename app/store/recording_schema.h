// The tables of a recording. docs/recording.md explains every column; change both together and raise
// kRecordingVersion when an older program could no longer read the file.
#pragma once

#include <cstdint>

namespace shardscope::store {

inline constexpr std::int32_t kRecordingVersion = 8;  ///< largest PRAGMA user_version
/// Version of a recording without limits and parts. Version 8 only adds tables
/// (recording_sums.h, recording_parts.h).
inline constexpr std::int32_t kWholeRecordingVersion = 7;
inline constexpr std::int32_t kRecordingApplicationId = 0x5A534350;  ///< PRAGMA application_id, "ZSCP"

inline constexpr const char* kRecordingSchema = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE run(run_id TEXT, model TEXT, device TEXT, hardware TEXT, versions TEXT, config_json TEXT,
  world INTEGER, local_world INTEGER, stage INTEGER, elems INTEGER, param_bytes INTEGER, grad_bytes INTEGER,
  master_bytes INTEGER, link_gbps REAL, link_latency_us REAL, simulated INTEGER);
CREATE TABLE models(id INTEGER PRIMARY KEY, name TEXT, role TEXT);
CREATE TABLE process_groups(rank INTEGER, id INTEGER, name TEXT, purpose TEXT, ranks TEXT,
  PRIMARY KEY(rank, id)) WITHOUT ROWID;
CREATE TABLE lane_names(rank INTEGER, lane TEXT, name TEXT, PRIMARY KEY(rank, lane)) WITHOUT ROWID;
CREATE TABLE tables(rank INTEGER PRIMARY KEY, bytes BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE modules(id INTEGER PRIMARY KEY, parent INTEGER, path TEXT, type TEXT, hooks INTEGER,
  model INTEGER);
CREATE TABLE params(id INTEGER PRIMARY KEY, name TEXT, dtype TEXT, shape TEXT, elems INTEGER,
  shard_elems INTEGER, padding_elems INTEGER, persistent INTEGER, frozen INTEGER);
CREATE TABLE module_params(module INTEGER, position INTEGER, param INTEGER, PRIMARY KEY(module, position)) WITHOUT ROWID;
CREATE TABLE slices(param INTEGER, rank INTEGER, param_offset INTEGER, shard_offset INTEGER, elems INTEGER,
  padding_elems INTEGER, block_elems INTEGER, stride_elems INTEGER);
CREATE TABLE ranks(rank INTEGER PRIMARY KEY, host TEXT, pid INTEGER, connected INTEGER, finished INTEGER,
  exit_code INTEGER, exit_message TEXT, events INTEGER, dropped INTEGER, lost_messages INTEGER,
  clock_offset_ns INTEGER, clock_residual_ns INTEGER, gate_number INTEGER, gate_kind INTEGER, gate_id INTEGER,
  holding INTEGER, crc INTEGER NOT NULL);
CREATE TABLE messages(id INTEGER PRIMARY KEY, rank INTEGER, at_ns INTEGER, severity INTEGER, text TEXT,
  crc INTEGER NOT NULL);
CREATE TABLE names(rank INTEGER, id INTEGER, name TEXT, crc INTEGER NOT NULL, PRIMARY KEY(rank, id)) WITHOUT ROWID;
CREATE TABLE chunks(id INTEGER PRIMARY KEY, rank INTEGER, sequence INTEGER, begin_ns INTEGER, end_ns INTEGER,
  clock_offset_ns INTEGER, clock_residual_ns INTEGER, events INTEGER, dropped_before INTEGER,
  lost_before INTEGER, parts INTEGER, bytes BLOB NOT NULL);
CREATE TABLE blocks(id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE levels(id INTEGER PRIMARY KEY, statuses BLOB NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE tiles(id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE tails(rank INTEGER PRIMARY KEY, statuses BLOB NOT NULL, bytes BLOB NOT NULL);
CREATE INDEX chunks_by_time ON chunks(rank, begin_ns, end_ns);
CREATE TABLE memory_peaks(rank INTEGER, pool TEXT, at_ns INTEGER, category TEXT, bytes INTEGER,
  PRIMARY KEY(rank, pool, category)) WITHOUT ROWID;
CREATE TABLE span_summary(rank INTEGER, stream TEXT, kind TEXT, code INTEGER, count INTEGER, total_ns INTEGER,
  min_ns INTEGER, max_ns INTEGER, PRIMARY KEY(rank, stream, kind, code)) WITHOUT ROWID;
CREATE TABLE gaps(rank INTEGER, begin_ns INTEGER, end_ns INTEGER, events INTEGER, shed INTEGER,
  messages INTEGER, reason TEXT);
)sql";

/// Exists only if the run recorded its parameter groups.
inline constexpr const char* kParamGroupsSchema =
    "CREATE TABLE IF NOT EXISTS param_groups(id INTEGER PRIMARY KEY, name TEXT, lr REAL, beta1 REAL, "
    "beta2 REAL, eps REAL, weight_decay REAL, params TEXT)";

}  // namespace shardscope::store
