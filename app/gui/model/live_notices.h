// What goes wrong with the events of a live run while it is watched, and what it warns of: shown when it
// happens, whichever panels are open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "app/collector/viewer.h"
#include "app/store/losses.h"

namespace shardscope::gui {

class LiveNotices {
 public:
  static constexpr double kShown = 30;    ///< seconds for which a loss is named after the last one
  static constexpr double kPatience = 5;  ///< seconds: a backlog for a moment is normal
  struct Notice {
    std::string what, hint;
    bool bad = false;             ///< events are missing, or an error; else a warning
    const char* panel = nullptr;  ///< with the details
  };
  struct Seen {
    std::uint64_t run = 0;       ///< Session::number()
    std::uint64_t revision = 0;  ///< of the store: `messages` are compared when it has changed
    /// Whether the window has what was recorded before it came: until then nothing is news.
    bool caught_up = true;
    store::Losses losses;
    std::span<const store::Message> messages;
    collector::Viewer::Traffic traffic;
  };
  /// Call when anything has changed.
  void look(const Seen& now, double seconds);
  /// Lost events first, then the newest warning or error, then a backlog. nullopt: nothing is lost or late.
  [[nodiscard]] std::optional<Notice> at(double seconds) const;
  /// Whether at() changes with the time alone.
  [[nodiscard]] bool changes(double seconds) const { return behind_since_ || at(seconds); }
  /// The backlog lasts.
  [[nodiscard]] bool behind(double seconds) const {
    return behind_since_ && seconds - *behind_since_ > kPatience;
  }

 private:
  /// Number of warnings and errors by rank and text: they come in any order, and old ones are removed.
  using Warnings = std::map<std::pair<std::uint32_t, std::string>, std::size_t>;
  void look_for_warnings(std::span<const store::Message> messages, bool news, double seconds);
  std::uint64_t run_ = 0;
  bool caught_up_ = false;
  store::Losses before_, last_;  ///< when the losses shown began, and now
  double lost_since_ = 0;
  std::optional<double> lost_at_, behind_since_;
  std::uint64_t waiting_bytes_ = 0;
  std::uint64_t missed_before_ = 0,
                missed_ = 0;  ///< items that the collector discarded before they were sent
  bool at_collector_ = false;
  Warnings warnings_;
  std::optional<std::uint64_t> revision_;  ///< that warnings_ are of
  std::optional<store::Message> warning_;  ///< the newest
  double warned_at_ = 0;
};

}  // namespace shardscope::gui
