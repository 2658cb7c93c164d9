#include "parts.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace shardscope::python {

void add_parts(nb::module_& module) {
  nb::class_<Parts>(module, "Parts")
      .def(nb::init<std::vector<Part>>())
      .def("__len__", &Parts::size)
      .def_prop_ro("elems", &Parts::elems)
      .def_prop_ro("first", &Parts::first)
      .def("status", &Parts::status)
      .def("kept", &Parts::kept)
      .def("in_collective", &Parts::in_collective)
      .def("fill", &Parts::fill);
}

}  // namespace shardscope::python
