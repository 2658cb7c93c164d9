#include "open_spans.h"

namespace nb = nanobind;

namespace shardscope::python {

void add_open_spans(nb::module_& module) {
  nb::class_<OpenSpans>(module, "OpenSpans")
      .def(nb::init<>())
      .def("begin", &OpenSpans::begin)
      .def("end", &OpenSpans::end)
      .def("end_all", &OpenSpans::end_all)
      .def("holds", &OpenSpans::holds)
      .def("any", &OpenSpans::any)
      .def("__len__", &OpenSpans::size);
}

}  // namespace shardscope::python
