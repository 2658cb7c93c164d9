// Whether the begin of a span may be among events that are missing. Then its unmatched end is explained, and
// no sign of a program that emits something wrong.
#pragma once

#include <cstdint>

#include "app/store/kind_set.h"

namespace shardscope::store {

/// [Note: ends whose begin is missing]
/// An end that closes no span is counted. For example, events were dropped while a module ran: its
/// module_begin is missing, and its module_end is explained. It is explained where its begin can have been
/// emitted while events are missing: before the first event, where events were dropped or lost, or while the
/// detail was too low for it. How many spans can have been open there is bounded: a lane nests, so of most
/// kinds it is one span, of those that nest in themselves one for each depth. A begin that cannot lie in
/// such a span proves that it is over (see [Note: spans with a missing end or begin]). A step that was
/// received from its begin to its end proves it of everything. So a program that never emits a begin is found
/// after one step at most.
class MissingBegins {
 public:
  /// For a lane that has just begun: begins of any kind may be missing.
  MissingBegins();
  /// For a lane that goes on where everything is known: none are missing.
  [[nodiscard]] static MissingBegins none();

  /// Begins of kinds above this detail, or of any kind, are missing somewhere up to `until_ns`.
  void missing(ev::Detail above, std::int64_t until_ns);
  void missing(std::int64_t until_ns);

  /// A span of this kind has begun. On the path of every event: mostly there is nothing to do.
  void begun(ev::EventKind kind, std::int64_t at_ns) noexcept {
    if (kinds_.empty()) [[likely]]
      return;
    forget(kind, at_ns);
  }
  /// A step that began at `begin_ns` has ended.
  void step_received(std::int64_t begin_ns) noexcept {
    if (begin_ns > until_ns_) kinds_ = {};
  }
  /// An end of a span of kind `begin` has found none. `inside`: a span of its kind is open whose begin was
  /// received, and that it would have to lie around.
  [[nodiscard]] bool explains(ev::EventKind begin, std::int64_t at_ns, bool inside);

 private:
  void forget(ev::EventKind kind, std::int64_t at_ns) noexcept;

  KindSet kinds_;  ///< of begins
  std::int64_t until_ns_ = INT64_MIN;
  std::uint8_t nested_ = 0;  ///< ends that were explained, of kinds that nest in themselves
};

/// The begin kind that this end kind closes.
[[nodiscard]] ev::EventKind begin_of(ev::EventKind end) noexcept;
/// How far out a kind lies: a begin proves that open spans of its own level or deeper inside are over.
/// 0 says that the kind may lie in anything.
[[nodiscard]] int outer_level(ev::EventKind begin) noexcept;

}  // namespace shardscope::store
