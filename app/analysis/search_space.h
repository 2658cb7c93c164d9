// What `what-if --search` may change of a recorded run, and to what.
#pragma once

#include <string>
#include <vector>

#include "app/analysis/setting_search.h"
#include "instrumentation/run_tables.h"
#include "runtime/config/config.h"

namespace shardscope::analysis {

/// Whether the time of what an offloaded optimizer does is known: a recorded run that offloads, or a given
/// link to the host.
enum class HostKnown : std::uint8_t { no, yes };

/// The settings of ZeRO that decide about time and memory, each with the recorded value and others: the
/// stage; overlap_comm; sizes of buckets, of what is prefetched and live, as parts of the model; the
/// threshold of persistence, 0 and the largest vector; recomputation; micro-batches of the same global batch;
/// the optimizer on the CPU. A setting that has no effect at any stage that is tried is left out, so are
/// those that what the run uses excludes (ZeRO++, MiCS and offloaded parameters need stage 3).
[[nodiscard]] std::vector<SearchSetting> usual_space(const config::TrainingConfig& recorded,
                                                     const instrumentation::RunTables& tables,
                                                     HostKnown host);

/// A setting from "KEY=V1,V2,...": the recorded value (`recorded`, JSON; "null" where the key has none) and
/// those values; commas inside brackets, braces and quotes do not part them. Throws std::invalid_argument:
/// what is wrong with the text.
[[nodiscard]] SearchSetting setting_from(const std::string& text, const std::string& recorded);

}  // namespace shardscope::analysis
