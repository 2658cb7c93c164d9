// Whether the begin of a span may be among missing events. If so, its unmatched end is explained and does
// not indicate a faulty program.
#pragma once

#include <cstdint>

#include "app/store/kind_set.h"

namespace shardscope::store {

/// [Note: ends whose begin is missing]
/// An end that closes no span is counted. For example, events were dropped while a module ran: its
/// module_begin is missing, and its module_end is explained. An end is explained where its begin may have
/// been emitted while events are missing: before the first event, where events were dropped or lost, or while
/// the detail was too low for it. The number of spans that can have been open there is bounded: a lane nests,
/// so it is one span of most kinds, and one per depth of kinds that nest in themselves. A begin that cannot
/// lie in such a span proves that it has ended (see [Note: spans with a missing end or begin]). A step that
/// was received from begin to end proves it for all kinds. So a program that never emits a begin is found
/// after one step at most.
class MissingBegins {
 public:
  /// For a new lane: begins of any kind may be missing.
  MissingBegins();
  /// For a lane that continues from a keyframe: no begins are missing.
  [[nodiscard]] static MissingBegins none();

  /// Begins of kinds above this detail, or of any kind, are missing somewhere up to `until_ns`.
  void missing(ev::Detail above, std::int64_t until_ns);
  void missing(std::int64_t until_ns);

  /// A span of this kind has begun. Called for every begin: usually there is nothing to do.
  void begun(ev::EventKind kind, std::int64_t at_ns) noexcept {
    if (kinds_.empty()) [[likely]]
      return;
    forget(kind, at_ns);
  }
  /// A step that began at `begin_ns` has ended.
  void step_received(std::int64_t begin_ns) noexcept {
    if (begin_ns > until_ns_) kinds_ = {};
  }
  /// An end of kind `begin`'s spans had no begin. `inside`: a span of the same kind is open whose begin was
  /// received; the missing one would have to enclose it.
  [[nodiscard]] bool explains(ev::EventKind begin, std::int64_t at_ns, bool inside);

 private:
  void forget(ev::EventKind kind, std::int64_t at_ns) noexcept;

  KindSet kinds_;  ///< begins that may be missing
  std::int64_t until_ns_ = INT64_MIN;
  std::uint8_t nested_ = 0;  ///< number of explained ends of kinds that nest in themselves
};

/// The begin kind that this end kind closes.
[[nodiscard]] ev::EventKind begin_of(ev::EventKind end) noexcept;
/// Nesting level of a kind: a begin proves that open spans of its own level or further inside have ended.
/// 0: the kind may lie in any other.
[[nodiscard]] int outer_level(ev::EventKind begin) noexcept;

}  // namespace shardscope::store
