// How each rank's part of a run ended, and which rank failed first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/store/store.h"

namespace shardscope::store {

struct RankEnd {
  enum class How : std::uint8_t {
    running,
    stopped,   ///< may be alive, but is silent (silences.h) up to the end of the store or recording
    finished,  ///< it reported its end, with exit code 0
    failed,    ///< it reported its end, with another exit code
    killed,    ///< by a signal, as reported by its launcher
    silent,    ///< its connection is gone and it never reported an end
    cut_off,   ///< the recording, or the received events, end before it does
  };
  std::uint32_t rank = 0;
  How how = How::running;
  std::int32_t exit_code = 0;  ///< 128 + signal for a killed rank
  std::int64_t at_ns = 0;      ///< its last event
  bool stop_seen = false;      ///< stopped only: its operating system reports it stopped
  std::string exit_message;
};

[[nodiscard]] RankEnd rank_end(const Store& store, const RankRow& row);
[[nodiscard]] constexpr bool is_failure(RankEnd::How how) noexcept {
  return how == RankEnd::How::failed || how == RankEnd::How::killed || how == RankEnd::How::silent;
}

/// [Note: which rank failed first]
/// Ranks that wait for a failed one fail because of it, and report it; the failed one may report nothing. In
/// this order: a rank that was killed by a signal; a silent rank that another reports as ended; the
/// rank that others report as failed; else the one whose events end first.
[[nodiscard]] std::optional<RankEnd> first_failure(const Store& store);

/// "rank 1 was killed by signal 9 (SIGKILL)", "rank 1 failed with exit code 3", "no events of rank 1".
[[nodiscard]] std::string text_of(const RankEnd& end);
/// Its last message; where it has none, that of another rank that failed because of it: "rank 0 then
/// failed: rank 1 ended (killed, ...) while rank 0 waited for it". May be empty.
[[nodiscard]] std::string words_on(const Store& store, const RankEnd& first);
/// Label at its end in a lane: "killed by signal 9 (SIGKILL)", "no events after 1.234 s".
[[nodiscard]] std::string mark_of(const RankEnd& end);
/// "1.234 s".
[[nodiscard]] std::string seconds_text(std::int64_t ns);

}  // namespace shardscope::store
