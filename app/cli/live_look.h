// A bounded look at a live run, for verbs that say something of it once: `why`, `findings`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/collector/viewer.h"
#include "app/store/store.h"

namespace shardscope::cli {

[[nodiscard]] bool is_endpoint(const std::string& text);

/// Until nothing has come in for `quiet_s`, or for `wait_s`. How long it was quiet, in nanoseconds; nothing:
/// it was not. Throws UserError where no collector answers.
[[nodiscard]] std::optional<std::int64_t> watch_until_quiet(const std::string& endpoint,
                                                            collector::Viewer& viewer, store::Store& store,
                                                            double quiet_s, double wait_s);
/// Until what has happened so far is in the store, or for `wait_s`; false: then it is not all of it. Throws
/// UserError where no collector answers.
[[nodiscard]] bool catch_up(const std::string& endpoint, collector::Viewer& viewer, store::Store& store,
                            double wait_s);

}  // namespace shardscope::cli
