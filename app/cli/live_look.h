// Reads a live run for a bounded time, for verbs that report on it once: `why`, `findings`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "app/collector/viewer.h"
#include "app/store/store.h"

namespace shardscope::cli {

[[nodiscard]] bool is_endpoint(const std::string& text);

/// Why a look ended after `wait_s` without what it was for: nothing answers at `endpoint` (and which runs of
/// this user listen elsewhere), or what answers has sent these events of these ranks and is not through.
[[nodiscard]] std::string no_answer_text(const std::string& endpoint, collector::Viewer::Link link,
                                         std::uint64_t events, std::size_t ranks, double wait_s);

/// Until nothing has arrived for `quiet_s`, or for `wait_s`. How long it was quiet, in nanoseconds; nothing:
/// it was not. Throws UserError where no collector answers, or what happened so far is not in the store by
/// then.
[[nodiscard]] std::optional<std::int64_t> watch_until_quiet(const std::string& endpoint,
                                                            collector::Viewer& viewer, store::Store& store,
                                                            double quiet_s, double wait_s);
/// Until what has happened so far is in the store, or for `wait_s`; false: then it is not all of it. Throws
/// UserError where no collector answers.
[[nodiscard]] bool catch_up(const std::string& endpoint, collector::Viewer& viewer, store::Store& store,
                            double wait_s);

}  // namespace shardscope::cli
