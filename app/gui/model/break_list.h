// The breakpoints of the window and what looks at them, whichever panels are shown: a recording is searched
// and played up to the next one, a live run is stopped. Of all ranks.
//
// Live, the run stops by itself AT a place (module, parameter, bucket, step): its gates hold by one rule at a
// time, so that of the first place in the list that is switched on and not behind it. Other places and all
// conditions are looked for in the events as they arrive, and the run holds at its next gate.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/breakpoints.h"

namespace shardscope::gui {

struct AppState;

class BreakList {
 public:
  [[nodiscard]] const std::vector<Breakpoint>& list() const noexcept { return list_; }
  /// One that is there already is switched on.
  void add(const store::Store& store, Breakpoint breakpoint);
  void remove(std::size_t which);
  void enable(std::size_t which, bool on);
  /// Changes with the list.
  [[nodiscard]] std::uint64_t revision() const noexcept { return revision_; }

  /// "module h.3.attn"; of a place that this run does not have, that.
  [[nodiscard]] std::string text(const store::Store& store, std::size_t which) const;
  /// Lines of a settings file, and back: places by their names, for other runs have other numbers.
  [[nodiscard]] std::vector<std::string> lines() const;
  void take_line(std::string_view line);
  /// Another run is shown. What was kept is off in a live one until the user switches it on: a run is not
  /// stopped because another was.
  void forget_run();

  /// Where the run is to stop by itself when it goes on: `never` without such a place.
  [[nodiscard]] ev::StopRule rule(const store::Store& store) const;
  /// Index of the one whose place rule() is.
  [[nodiscard]] std::optional<std::size_t> at_gate(const store::Store& store) const;
  /// The rule that a run that goes on is to be given because the list has changed; nothing: it has it.
  [[nodiscard]] std::optional<ev::StopRule> rule_due(const store::Store& store) const;
  /// Index of the one whose place the run stops at by itself, by the last rule that it was given.
  [[nodiscard]] std::optional<std::size_t> armed() const noexcept { return armed_; }
  /// A command went to the run: with which rule, or a pause.
  void sent(const ev::StopRule& rule, const store::Store& store, const collector::ControlState& control);
  void sent_pause();

  /// Does what is due, for about `budget`. `seconds`: any clock that goes on. Returns whether anything
  /// changed.
  bool tick(AppState& app, double seconds, std::chrono::microseconds budget);

  void to_next(AppState& app);
  void play(AppState& app, bool on);
  [[nodiscard]] bool playing() const noexcept { return playback_.playing; }
  [[nodiscard]] bool searching() const noexcept { return search_.has_value(); }
  double& speed() noexcept { return playback_.speed; }  ///< seconds of the run per second

  struct Stop {
    std::size_t which = 0;
    std::optional<std::uint32_t> rank;  ///< nullopt: all
  };
  [[nodiscard]] const std::optional<Stop>& stopped() const noexcept { return stopped_; }
  [[nodiscard]] bool none_left() const noexcept { return none_left_; }

 private:
  using BreakClock = std::chrono::steady_clock;
  /// Goes on in windows of time: of each, rank after rank, up to the first that has a hit.
  struct Search {
    std::int64_t after_ns = 0;  ///< of the window
    std::int64_t until_ns = 0;
    std::int64_t length_ns = 0;  ///< of a window
    std::size_t next_rank = 0;   ///< in the window
    std::optional<BreakHit> best;
    std::uint32_t rank = 0;  ///< of the best
    bool jump = false;       ///< else it is what playing stops at
  };
  void resolve(const store::Store& store);
  void start_search(const AppState& app, std::int64_t after_ns, bool jump);
  void search_window(const AppState& app, BreakClock::time_point until);
  bool search(AppState& app, BreakClock::time_point until);
  bool advance(AppState& app, double passed);
  bool watch(AppState& app, BreakClock::time_point until);
  void stop_at(AppState& app, std::size_t which, std::optional<std::uint32_t> rank);
  void skip(const store::Store& store);
  [[nodiscard]] bool any_enabled() const;
  void changed();

  std::vector<Breakpoint> list_;
  std::vector<std::string> names_;  ///< of the places in list_
  std::uint64_t revision_ = 0;
  bool resolved_ = false;  ///< names have been looked up in the run that is shown
  bool kept_ = false;      ///< the list came from the settings and has not been changed since

  std::optional<Stop> stopped_;
  bool none_left_ = false;
  // A recording.
  Playback playback_;
  double last_seconds_ = 0;
  std::optional<Search> search_;
  std::optional<BreakHit> ahead_;  ///< that playing stops at
  std::uint32_t ahead_rank_ = 0;
  std::int64_t played_ns_ = -1;  ///< where playing has set the cursor
  // A run that goes on.
  bool rule_due_ = false;                       ///< the run does not know of the list as it is
  bool has_rule_ = false;                       ///< it was given one, though its breakpoint may be gone
  std::optional<std::size_t> armed_;            ///< see armed()
  bool gone_on_ = false;                        ///< since that was sent the run was seen to go on
  std::uint64_t sent_gate_ = 0;                 ///< where it was held then
  std::map<std::uint32_t, std::int64_t> seen_;  ///< by rank: events have been looked at up to there
  std::int64_t steps_seen_ns_ = -1;
  std::uint64_t skipped_ = UINT64_MAX;  ///< revision of the store up to which seen_ was moved on
  std::size_t next_rank_ = 0;
};

}  // namespace shardscope::gui
