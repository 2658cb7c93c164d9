// `_core.CollectiveLane`: collectives of one lane, one open at a time.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "shardscope/shardscope.h"

namespace shardscope::python {

struct Collective {
  std::uint8_t op;
  std::uint32_t sequence, owner, code;
  std::int64_t elems, bytes;
  /// The Work's future, until it is complete: it keeps the operation's output alive. Null: there is none.
  nanobind::object future{};
  bool ended = false, failed = false;
};

/// Of what a result is read: by a future's value(), or by wait() of a Work on host memory, which returns at
/// once.
enum class Result { future, work };
/// Whether reading the result of a completed object raises. The exception is left to the training, which sees
/// it when it waits.
[[nodiscard]] bool failed(nanobind::handle complete, Result result);
/// Whether a completed Work has an exception. Does not wait; not every failed Work has
/// one.
[[nodiscard]] bool has_exception(nanobind::handle work);
/// Whether a future reports that it is complete. Does not wait; false if the call raises.
[[nodiscard]] bool is_done(nanobind::handle future);

/// Collectives of one lane in order of issue. A collective issued while another runs begins when that has
/// ended, as on a stream. Requires the GIL; used by the issuing thread and by those that complete
/// collectives.
class Lane {
 public:
  explicit Lane(std::uint8_t lane) : lane_(lane) {}
  [[nodiscard]] std::uint8_t number() const { return lane_; }

  void issue(const std::shared_ptr<Collective>& issued) {
    if (closed_) return;
    waiting_.push_back(issued);
    if (waiting_.size() == 1) begin();
  }
  void ended(Collective& which, bool failed) {
    // Freed last: freeing it may run Python code.
    const nanobind::object future = std::exchange(which.future, nanobind::object());
    if (closed_ || which.ended) return;
    which.ended = true;
    which.failed = failed;
    while (!waiting_.empty() && waiting_.front()->ended) {
      const Collective& c = *waiting_.front();
      shardscope_collective_end_among(lane_, c.op, c.sequence, c.owner,
                                      c.failed ? c.code | SHARDSCOPE_ENDED_BY_ERROR : c.code, c.elems,
                                      c.bytes);
      waiting_.pop_front();
      if (!waiting_.empty()) begin();
    }
  }
  /// The run has ended. Completed collectives end there, even if the future's callback has not run: it needs
  /// the GIL, which the closing thread may have held since the training's own wait returned. Such an end is
  /// an upper bound. Unfinished ones stay open and belong to no later run.
  void close();

 private:
  void begin() const {
    const Collective& c = *waiting_.front();
    shardscope_collective_begin_among(lane_, c.op, c.sequence, c.owner, c.code, c.elems, c.bytes);
  }

  std::uint8_t lane_;
  bool closed_ = false;
  std::deque<std::shared_ptr<Collective>> waiting_;
};

/// Called when its collective has ended, with its future, as futures call their callbacks, or with whether it
/// failed. In C++ because a thread of the communication library calls it while the training thread waits for
/// the GIL.
struct CollectiveEnded {
  std::shared_ptr<Lane> lane;
  std::shared_ptr<Collective> which;
};

/// A lane shared by the hooks of several process groups.
struct CollectiveLane {
  std::shared_ptr<Lane> lane;

  [[nodiscard]] CollectiveEnded issue(const Collective& collective) const {
    CollectiveEnded ended{lane, std::make_shared<Collective>(collective)};
    lane->issue(ended.which);
    return ended;
  }
};

void add_collective_lane(nanobind::module_& module);

}  // namespace shardscope::python
