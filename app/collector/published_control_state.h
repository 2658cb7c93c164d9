// The part of a collector's state that viewers receive besides the log: pauses, whether the run is over, and
// a revision that increases with each change. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "app/collector/viewer.h"
#include "instrumentation/wire.h"

namespace shardscope::collector {

class PublishedControlState {
 public:
  [[nodiscard]] std::uint64_t revision() const noexcept { return revision_; }
  /// Counts a change. Returns its revision.
  std::uint64_t changed() noexcept { return ++revision_; }

  /// The state as last published to viewers.
  [[nodiscard]] const ControlState& control() const noexcept { return control_; }
  /// Publishes `control`. Returns its note where that has changed and is not empty.
  [[nodiscard]] std::optional<std::string> show(const ControlState& control) {
    if (control.paused == control_.paused && control.pausing == control_.pausing &&
        control.note == control_.note && control.gate == control_.gate)
      return std::nullopt;
    const bool news = control.note != control_.note && !control.note.empty();
    control_ = control;
    ++revision_;
    return news ? std::optional(control.note) : std::nullopt;
  }

  /// Whether the end of the run is published, or about to be.
  [[nodiscard]] bool over() const noexcept { return over_; }
  void show_over(bool over) noexcept {
    over_ = over;
    ++revision_;
  }

  /// Adds the state to a reply, with `now` as the state of pauses: a lease expires without a change.
  void add_to(instrumentation::wire::ViewReply& reply, const ControlState& now) const {
    reply.pausing = now.pausing;
    reply.paused = now.paused;
    reply.gate = now.gate;
    reply.lease_left_s = now.lease_left_s;
    reply.note = now.note;
    reply.finished = over_;
  }

  /// Stores the detail last reported by a rank or set by a viewer; -1: not known. Returns the previous one.
  int set_detail(int detail) noexcept { return std::exchange(detail_, detail); }

 private:
  std::uint64_t revision_ = 1;
  ControlState control_;
  bool over_ = false;
  int detail_ = -1;
};

}  // namespace shardscope::collector
