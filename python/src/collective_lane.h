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
  /// Of its Work, until it has ended: it keeps what the operation has written alive. Null: there is none.
  nanobind::object future{};
  bool ended = false, failed = false;
};

/// Whether asking for the outcome of something complete raises: `method` of a future ("value") or of a Work
/// on host memory ("wait", which then waits for nothing). What is raised is the training's to see, where it
/// waits.
[[nodiscard]] bool failed(nanobind::handle complete, const char* method);
/// Whether a Work that is complete has an exception. Waits for nothing; not every Work has one where it
/// failed.
[[nodiscard]] bool has_exception(nanobind::handle work);
/// Whether a future says that it is complete. Waits for nothing; one that raises does not say so.
[[nodiscard]] bool is_done(nanobind::handle future);

/// Collectives of one lane in the order in which they were issued. What is issued while another runs begins
/// when that has ended, as on a stream. Used under the GIL, by the thread that issues and by those that
/// complete.
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
    // Freed last: what it frees may run Python.
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
  /// The run is over. What is complete ends there, though its future's callback has not run: it needs the
  /// GIL, which the thread that closes may have held since the training's own wait returned. So that end is a
  /// bound. What has not ended stays open there, and is of no other run.
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
/// failed. In C++ because a thread of the communication library calls it, and the training's thread waits for
/// the GIL meanwhile.
struct CollectiveEnded {
  std::shared_ptr<Lane> lane;
  std::shared_ptr<Collective> which;
};

/// A lane that hooks of several process groups share.
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
