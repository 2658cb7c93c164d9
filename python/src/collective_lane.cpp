#include "collective_lane.h"

namespace nb = nanobind;

namespace shardscope::python {

void add_collective_lane(nb::module_& module) {
  nb::class_<CollectiveEnded>(module, "CollectiveEnded")
      .def("__call__", [](const CollectiveEnded& self) { self.lane->ended(*self.which); })
      .def("__call__", [](const CollectiveEnded& self, nb::handle) { self.lane->ended(*self.which); });
  nb::class_<CollectiveLane>(module, "CollectiveLane")
      .def("__init__", [](CollectiveLane* self, std::uint8_t lane) {
        new (self) CollectiveLane{std::make_shared<Lane>(lane)};
      });
}

}  // namespace shardscope::python
