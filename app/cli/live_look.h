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

/// Why reading ended after `wait_s` without a result: nothing answers at `endpoint` (and which runs of
/// this user listen elsewhere), or the collector has sent `events` events of `ranks` ranks and is not done.
[[nodiscard]] std::string no_answer_text(const std::string& endpoint, collector::Viewer::Link link,
                                         std::uint64_t events, std::size_t ranks, double wait_s);

/// How a look at a live run ended.
struct LiveLook {
  std::int64_t quiet_ns = 0;  ///< since the last event
  bool quiet = false;         ///< for as long as was asked
  collector::Viewer::Link link{};
};
/// Reads until nothing has arrived for `quiet_s`, nullopt: for longer than is usual in the run
/// (analysis::usual_wait_ns), or until the run has ended or its collector is lost, or for `wait_s` (nullopt:
/// 20 s, or as long as that takes). Throws UserError where no collector answers, or the run so far is not in
/// the store by then.
[[nodiscard]] LiveLook watch_until_quiet(const std::string& endpoint, collector::Viewer& viewer,
                                         store::Store& store, std::optional<double> quiet_s,
                                         std::optional<double> wait_s);
/// Reads until the run so far is in the store, or for `wait_s`; false: then it is incomplete. Throws
/// UserError where no collector answers.
[[nodiscard]] bool catch_up(const std::string& endpoint, collector::Viewer& viewer, store::Store& store,
                            double wait_s);

}  // namespace shardscope::cli
