// How each rank's part of a run ended, and which rank was the first that did not end as it should.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/store/store.h"

namespace shardscope::store {

struct RankEnd {
  enum class How : std::uint8_t {
    running,
    stopped,   ///< it may live, and is silent (silences.h): where the store ends, or the recording does
    finished,  ///< it said that it ended, with code 0
    failed,    ///< it said so with another code
    killed,    ///< by a signal, as the program that started it says
    silent,    ///< its connection is gone and it never said that it ended
    cut_off,   ///< what was recorded, or has arrived, ends before it does
  };
  std::uint32_t rank = 0;
  How how = How::running;
  std::int32_t exit_code = 0;  ///< 128 + signal of one that was killed
  std::int64_t at_ns = 0;      ///< its last event
  bool stop_seen = false;      ///< of one that is stopped: its operating system says so
  std::string exit_message;
};

[[nodiscard]] RankEnd rank_end(const Store& store, const RankRow& row);
[[nodiscard]] constexpr bool is_failure(RankEnd::How how) noexcept {
  return how == RankEnd::How::failed || how == RankEnd::How::killed || how == RankEnd::How::silent;
}

/// [Note: which rank failed first]
/// Ranks that wait for one that is gone fail because of it, and say so; the one that is gone says nothing. In
/// this order: a rank that was killed by a signal; a silent rank of which another says that it ended; the
/// rank that the others name as the first that failed; else the one whose events end first.
[[nodiscard]] std::optional<RankEnd> first_failure(const Store& store);

/// "rank 1 was killed by signal 9 (SIGKILL)", "rank 1 failed with exit code 3", "no events of rank 1".
[[nodiscard]] std::string text_of(const RankEnd& end);
/// What it said last; of one that said nothing what another said that failed because of it: "rank 0 then
/// failed: rank 1 ended (killed, ...) while rank 0 waited for it". May be empty.
[[nodiscard]] std::string words_on(const Store& store, const RankEnd& first);
/// What stands at its end in a lane: "killed by signal 9 (SIGKILL)", "no events after 1.234 s".
[[nodiscard]] std::string mark_of(const RankEnd& end);
/// "1.234 s".
[[nodiscard]] std::string seconds_text(std::int64_t ns);

}  // namespace shardscope::store
