#include "collective_lane.h"

#include <cstdint>
#include <deque>
#include <memory>

#include "shardscope/shardscope.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

struct Collective {
  std::uint8_t op;
  std::uint32_t sequence, owner, code;
  std::int64_t elems, bytes;
  bool ended = false;
};

/// Collectives of one lane in the order in which they were issued. What is issued while another runs begins
/// when that has ended, as on a stream. Used under the GIL, by the thread that issues and by those that
/// complete.
class Lane {
 public:
  explicit Lane(std::uint8_t lane) : lane_(lane) {}

  void issue(const std::shared_ptr<Collective>& issued) {
    waiting_.push_back(issued);
    if (waiting_.size() == 1) begin();
  }
  void ended(Collective& which) {
    which.ended = true;
    while (!waiting_.empty() && waiting_.front()->ended) {
      const Collective& c = *waiting_.front();
      shardscope_collective_end_among(lane_, c.op, c.sequence, c.owner, c.code, c.elems, c.bytes);
      waiting_.pop_front();
      if (!waiting_.empty()) begin();
    }
  }

 private:
  void begin() const {
    const Collective& c = *waiting_.front();
    shardscope_collective_begin_among(lane_, c.op, c.sequence, c.owner, c.code, c.elems, c.bytes);
  }

  std::uint8_t lane_;
  std::deque<std::shared_ptr<Collective>> waiting_;
};

/// Called when its collective has ended, with what a future hands to its callbacks, or with nothing. In C++
/// because a thread of the communication library calls it, and the training's thread waits for the GIL
/// meanwhile.
struct Ended {
  std::shared_ptr<Lane> lane;
  std::shared_ptr<Collective> which;
};

}  // namespace

void add_collective_lane(nb::module_& module) {
  nb::class_<Ended>(module, "CollectiveEnded")
      .def("__call__", [](const Ended& self) { self.lane->ended(*self.which); })
      .def("__call__", [](const Ended& self, nb::handle) { self.lane->ended(*self.which); });
  struct Shared {
    std::shared_ptr<Lane> lane;
  };
  nb::class_<Shared>(module, "CollectiveLane")
      .def("__init__",
           [](Shared* self, std::uint8_t lane) { new (self) Shared{std::make_shared<Lane>(lane)}; })
      .def("issue", [](const Shared& self, std::uint8_t op, std::uint32_t sequence, std::uint32_t owner,
                       std::uint32_t code, std::int64_t elems, std::int64_t bytes) {
        Ended ended{self.lane,
                    std::make_shared<Collective>(Collective{op, sequence, owner, code, elems, bytes})};
        ended.lane->issue(ended.which);
        return ended;
      });
}

}  // namespace shardscope::python
