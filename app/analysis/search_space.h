// The settings and values that `what-if --search` tries for a recorded run.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/setting_search.h"
#include "instrumentation/run_tables.h"
#include "runtime/config/config.h"

namespace shardscope::analysis {

/// Whether the time of an offloaded optimizer can be predicted: the recorded run offloads, or a link to the
/// host is given.
enum class HostKnown : std::uint8_t { no, yes };

/// The ZeRO settings that determine time and memory, each with the recorded value and alternatives: stage;
/// overlap_comm; sizes of buckets, of prefetched and live parameters, as fractions of the model; persistence
/// threshold, 0 and the largest vector; recomputation; micro-batches with the same global batch; the
/// optimizer on the CPU. Omits settings without effect at every stage tried, and those that the run's
/// features exclude (ZeRO++, MiCS and offloaded parameters need stage 3).
[[nodiscard]] std::vector<SearchSetting> usual_space(const config::TrainingConfig& recorded,
                                                     const instrumentation::RunTables& tables,
                                                     HostKnown host);

/// Removes the settings of which a value has one of these keys: they have a given value instead of the
/// recorded one. The first setting stays with its first value, for others refer to its values; those that
/// have no effect with that one are removed.
void leave_out(std::vector<SearchSetting>& space, const std::vector<std::string>& keys);

/// For what the error of predictions was not measured, as in "on GPUs with 64 ranks"; empty: the run is like
/// the measured ones (docs/what-if-pairs.md), or itself simulated.
[[nodiscard]] std::string unmeasured_of(const instrumentation::RunTables& tables);

/// Parses "KEY=V1,V2,...": the recorded value (`recorded`, JSON; "null" if the key has none) and these
/// values. Commas inside brackets, braces and quotes do not separate values. Throws std::invalid_argument:
/// what is wrong with the text.
[[nodiscard]] SearchSetting setting_from(const std::string& text, const std::string& recorded);

}  // namespace shardscope::analysis
