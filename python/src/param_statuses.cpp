#include "param_statuses.h"

namespace shardscope::python {

void add_param_statuses(nb::module_& module) {
  nb::class_<ParamStatuses>(module, "ParamStatuses")
      .def(nb::init<>())
      .def_rw("module", &ParamStatuses::module)
      .def_rw("entering", &ParamStatuses::entering)
      .def_rw("gather", &ParamStatuses::gather)
      .def_rw("cause_in", &ParamStatuses::cause_in)
      .def_rw("cause_out", &ParamStatuses::cause_out)
      .def_ro("gathered_bytes", &ParamStatuses::gathered_bytes)
      .def_ro("coming_bytes", &ParamStatuses::coming_bytes)
      .def("follow", &ParamStatuses::follow, nb::keep_alive<1, 2>())
      .def("report", &ParamStatuses::report, nb::arg("gathered").none(), nb::arg("coming").none())
      .def("changed", &ParamStatuses::changed)
      .def("status_of", &ParamStatuses::status_of)
      .def("gather_of", &ParamStatuses::gather_of)
      .def("gathered_by", &ParamStatuses::gathered_by);
}

}  // namespace shardscope::python
