// The window's breakpoints and their evaluation, independent of the visible panels: a recording is searched
// and played up to the next hit, a live run is stopped. All ranks are searched.
//
// Live, the run itself stops only AT a place (module, parameter, bucket, step). Its gates check one rule:
// that of the first enabled place in the list that the run has not passed. Other places and all conditions
// are evaluated on the events as they arrive; a hit pauses the run, which stops at its next gate.
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
  /// Enables the breakpoint if the list already contains it.
  void add(const store::Store& store, Breakpoint breakpoint);
  void remove(std::size_t which);
  void enable(std::size_t which, bool on);
  /// Incremented by every change of the list.
  [[nodiscard]] std::uint64_t revision() const noexcept { return revision_; }

  /// "module h.3.attn"; a place that is unknown in this run is marked as such.
  [[nodiscard]] std::string text(const store::Store& store, std::size_t which) const;
  /// Serialization for the settings file: places by name, since ids differ between runs.
  [[nodiscard]] std::vector<std::string> lines() const;
  void take_line(std::string_view line);
  /// Call when another run is opened. Restored breakpoints stay disabled in a live run until the user enables
  /// them: a list kept from another run must not stop this one.
  void forget_run();

  /// The rule to send when the run resumes: `never` without an enabled place.
  [[nodiscard]] ev::StopRule rule(const store::Store& store) const;
  /// Index of the breakpoint that rule() stops at.
  [[nodiscard]] std::optional<std::size_t> at_gate(const store::Store& store) const;
  /// The rule to send to a running run after a change of the list; nullopt when it is up to date.
  [[nodiscard]] std::optional<ev::StopRule> rule_due(const store::Store& store) const;
  /// Index of the breakpoint that the last rule sent stops at.
  [[nodiscard]] std::optional<std::size_t> armed() const noexcept { return armed_; }
  /// Call after a command was sent to the run: a rule, or a pause.
  void sent(const ev::StopRule& rule, const store::Store& store, const collector::ControlState& control);
  void sent_pause();

  /// Searches, plays or watches for about `budget`. `seconds`: any monotonic clock. Returns whether anything
  /// changed.
  bool tick(AppState& app, double seconds, std::chrono::microseconds budget);

  void to_next(AppState& app);
  void play(AppState& app, bool on);
  [[nodiscard]] bool playing() const noexcept { return playback_.playing; }
  [[nodiscard]] bool searching() const noexcept { return search_.has_value(); }
  double& speed() noexcept { return playback_.speed; }  ///< recording time per second

  struct Stop {
    std::size_t which = 0;
    std::optional<std::uint32_t> rank;  ///< nullopt: all
  };
  [[nodiscard]] const std::optional<Stop>& stopped() const noexcept { return stopped_; }
  [[nodiscard]] bool none_left() const noexcept { return none_left_; }

 private:
  using BreakClock = std::chrono::steady_clock;
  /// Searches one time window after the other, each rank by rank, up to the first window with a hit.
  struct Search {
    std::int64_t after_ns = 0;  ///< begin of the window, exclusive
    std::int64_t until_ns = 0;
    std::int64_t length_ns = 0;  ///< length of each window
    std::size_t next_rank = 0;   ///< next rank to search in the window
    std::optional<BreakHit> best;
    std::uint32_t rank = 0;  ///< rank of `best`
    bool jump = false;       ///< move the cursor to the hit; false: playback stops there
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
  std::vector<std::string> names_;  ///< of the places in list_, by index
  std::uint64_t revision_ = 0;
  bool resolved_ = false;  ///< the names were looked up in the current run
  bool kept_ = false;      ///< kept from the settings or an earlier run, not changed since

  std::optional<Stop> stopped_;
  bool none_left_ = false;
  // Recordings.
  Playback playback_;
  double last_seconds_ = 0;
  std::optional<Search> search_;
  std::optional<BreakHit> ahead_;  ///< the hit at which playback stops
  std::uint32_t ahead_rank_ = 0;
  std::int64_t played_ns_ = -1;  ///< the cursor as set by playback
  // Live runs.
  bool rule_due_ = false;                       ///< the run has a rule older than the list
  bool has_rule_ = false;                       ///< a rule was sent; its breakpoint may be removed
  std::optional<std::size_t> armed_;            ///< see armed()
  bool gone_on_ = false;                        ///< the run has resumed since the rule was sent
  std::uint64_t sent_gate_ = 0;                 ///< the gate that held the run at that time
  std::map<std::uint32_t, std::int64_t> seen_;  ///< by rank: events up to this time have been evaluated
  std::int64_t steps_seen_ns_ = -1;
  std::uint64_t skipped_ = UINT64_MAX;  ///< store revision up to which seen_ was advanced
  std::size_t next_rank_ = 0;
};

}  // namespace shardscope::gui
