#include "memory_level.h"

namespace nb = nanobind;

namespace shardscope::python {

void add_memory_level(nb::module_& module) {
  nb::class_<MemoryLevel>(module, "MemoryLevel")
      .def(nb::init<std::uint8_t, std::uint8_t>())
      .def("add", &MemoryLevel::add)
      .def("set", &MemoryLevel::set)
      .def_prop_ro("bytes", &MemoryLevel::bytes);
}

}  // namespace shardscope::python
