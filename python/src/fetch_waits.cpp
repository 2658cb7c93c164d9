#include "fetch_waits.h"

#include <Python.h>

#include <cstdint>
#include <utility>

#include "attribute.h"
#include "param_statuses.h"
#include "session.h"
#include "shardscope/shardscope.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// The first wait of each gather: for which module, for which gather, for how many bytes (zero3_params.py).
class FetchWaits {
 public:
  /// `statuses` must outlive this.
  FetchWaits(nb::object session, ParamStatuses& statuses)
      : session_(std::move(session)), statuses_(statuses) {}

  /// (module, gather, bytes), for ended(); None where there is nothing to wait for.
  nb::object begins(nb::handle handle, nb::args, nb::kwargs) {
    if (nb::cast<bool>(nb::getattr(handle, "complete", nb::bool_(false))) || !session_.started() ||
        session_.on_device())
      return nb::none();
    nb::object params = nb::getattr(handle, "params", nb::none());
    if (params.is_none() || nb::len(params) == 0)
      params = nb::make_tuple(handle.attr("_AllGatherHandle__param"));
    const nb::object first = params[0];
    const std::uint32_t number = session_.param(first);
    if (number == SHARDSCOPE_NO_ID || statuses_.status_of(number) != SHARDSCOPE_IN_FLIGHT) return nb::none();
    std::int64_t bytes = 0;
    for (const nb::handle param : params)
      bytes += numel_.as<std::int64_t>(param) * nb::cast<std::int64_t>(element_size_.call(param));
    const std::uint32_t gather = statuses_.gather_of(number);
    shardscope_fetch_wait_begin(statuses_.module, gather, bytes);
    return nb::make_tuple(statuses_.module, gather, bytes);
  }
  void ended(nb::handle wait, nb::handle, nb::handle, nb::args, nb::kwargs) const {
    if (wait.is_none()) return;
    shardscope_fetch_wait_end(nb::cast<std::uint32_t>(wait[0]), nb::cast<std::uint32_t>(wait[1]),
                              nb::cast<std::int64_t>(wait[2]));
  }

 private:
  Session session_;
  ParamStatuses& statuses_;
  Attribute numel_{"ds_numel"}, element_size_{"element_size"};
};

}  // namespace

void add_fetch_waits(nb::module_& module) {
  using nb::arg;
  nb::class_<FetchWaits>(module, "FetchWaits")
      .def(nb::init<nb::object, ParamStatuses&>(), nb::keep_alive<1, 3>())
      .def("begins", &FetchWaits::begins)
      .def("ended", &FetchWaits::ended, arg("wait").none(), arg("result").none(), arg("handle"), arg("args"),
           arg("kwargs"));
}

}  // namespace shardscope::python
