// What goes wrong with the events of a live run while it is watched, and what it warns of: said when it
// happens, whichever panels are open.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

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
  /// Call when anything has changed. `run`: Session::number(); losses from before this window are not news.
  void look(std::uint64_t run, const store::Losses& losses, std::span<const store::Message> messages,
            const collector::Viewer::Traffic& traffic, double seconds);
  /// nullopt: nothing is lost or late.
  /// Lost events first, then the newest warning or error, then a backlog.
  [[nodiscard]] std::optional<Notice> at(double seconds) const;
  /// The backlog lasts.
  [[nodiscard]] bool behind(double seconds) const {
    return behind_since_ && seconds - *behind_since_ > kPatience;
  }

 private:
  std::uint64_t run_ = 0;
  store::Losses before_, last_;  ///< when the losses shown began, and now
  double lost_since_ = 0;
  std::optional<double> lost_at_, behind_since_;
  std::uint64_t waiting_bytes_ = 0;
  std::uint64_t missed_before_ = 0,
                missed_ = 0;  ///< items that the collector discarded before they were sent
  bool at_collector_ = false;
  std::size_t messages_ = 0;  ///< seen
  std::optional<store::Message> said_;
  double said_at_ = 0;
};

}  // namespace shardscope::gui
