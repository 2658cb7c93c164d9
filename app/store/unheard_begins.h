// Whether the begin of a span may have been before what was heard, or among what is missing: then its end
// says nothing of the program that emits it.
#pragma once

#include <cstdint>

#include "app/store/kind_set.h"

namespace shardscope::store {

/// [Note: ends whose begin is missing]
/// An end that closes no span is counted. It is explained where its begin can have been emitted at a time
/// from which not everything was heard: before the first event, where events were dropped or lost, or while
/// the detail was too low for it. What was open there is bounded: a lane nests, so of most kinds it is one
/// span, of those that nest in themselves as many as are deep, and a begin that cannot lie in such a span
/// proves that it is over (see [Note: spans with a missing end or begin]). A step that was heard from its
/// begin to its end proves it of everything. So a program that never emits a begin is found out after one
/// step at most.
class UnheardBegins {
 public:
  /// Of a lane that has just begun: of any kind.
  UnheardBegins();
  /// Of one that goes on where everything is known.
  [[nodiscard]] static UnheardBegins none();

  /// Of kinds above `detail` begins are missing somewhere up to `until_ns`.
  void missing(ev::Detail above, std::int64_t until_ns);
  void missing(std::int64_t until_ns);

  /// A span of this kind has begun. On the path of every event: mostly there is nothing to do.
  void begun(ev::EventKind kind, std::int64_t at_ns) noexcept {
    if (kinds_.empty()) [[likely]]
      return;
    forget(kind, at_ns);
  }
  /// A step that began at `begin_ns` has ended.
  void step_heard(std::int64_t begin_ns) noexcept {
    if (begin_ns > until_ns_) kinds_ = {};
  }
  /// An end of a span of kind `begin` has found none. `inside`: a span of its kind is open that was heard to
  /// begin, and that it would have to lie around.
  [[nodiscard]] bool explains(ev::EventKind begin, std::int64_t at_ns, bool inside);

 private:
  void forget(ev::EventKind kind, std::int64_t at_ns) noexcept;

  KindSet kinds_;  ///< of begins
  std::int64_t until_ns_ = INT64_MIN;
  std::uint8_t nested_ = 0;  ///< ends that were explained, of kinds that nest in themselves
};

/// Of an end.
[[nodiscard]] ev::EventKind begin_of(ev::EventKind end) noexcept;
/// How far out a kind lies: a begin proves that open spans of its own level or deeper inside are over.
/// 0 says that the kind may lie in anything.
[[nodiscard]] int outer_level(ev::EventKind begin) noexcept;

}  // namespace shardscope::store
