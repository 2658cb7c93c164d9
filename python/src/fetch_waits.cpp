#include "fetch_waits.h"

#include <Python.h>

#include <cstdint>
#include <utility>

#include "attribute.h"
#include "native_hook.h"
#include "param_statuses.h"
#include "session.h"
#include "shardscope/shardscope.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// The first wait of each gather: its module, its gather, its bytes (zero3_params.py).
class FetchWaits {
 public:
  /// Both must outlive this.
  FetchWaits(SessionState& session, ParamStatuses& statuses) : session_(session), statuses_(statuses) {}

  /// (module, gather, bytes), for ended(); None if there is nothing to wait for.
  nb::object begins(nb::handle handle) {
    if (!session_.started || session_.on_device || complete_.or_none(handle).ptr() == Py_True)
      return nb::none();
    nb::object params = params_.or_none(handle);
    if (params.is_none()) params = not_gathered_.or_none(handle);  // of a run of one rank
    if (params.is_none() || nb::len(params) == 0) {
      const nb::object single = param_.or_none(handle);
      params = nb::make_tuple(single.is_none() ? not_gathered_param_.of(handle) : single);
    }
    const nb::object first = params[0];
    const std::uint32_t number = session_.params.of(first);
    if (number == SHARDSCOPE_NO_ID || statuses_.status_of(number) != SHARDSCOPE_IN_FLIGHT) return nb::none();
    std::int64_t bytes = 0;
    for (const nb::handle param : params) {
      const std::uint32_t each = session_.params.of(param);
      const std::int64_t known = each == SHARDSCOPE_NO_ID ? 0 : statuses_.bytes_of(each);
      bytes += known > 0 ? known
                         : numel_.as<std::int64_t>(param) * nb::cast<std::int64_t>(element_size_.call(param));
    }
    const std::uint32_t gather = statuses_.gather_of(number);
    shardscope_fetch_wait_begin(statuses_.module, gather, bytes);
    return nb::make_tuple(statuses_.module, gather, bytes);
  }
  static void ended(nb::handle wait) {
    if (wait.is_none()) return;
    shardscope_fetch_wait_end(nb::cast<std::uint32_t>(wait[0]), nb::cast<std::uint32_t>(wait[1]),
                              nb::cast<std::int64_t>(wait[2]));
  }

 private:
  SessionState& session_;
  ParamStatuses& statuses_;
  Attribute complete_{"complete"}, params_{"params"}, param_{"_AllGatherHandle__param"},
      not_gathered_{"_NoGatherCoalescedHandle__params"}, not_gathered_param_{"_NoGatherHandle__param"},
      numel_{"ds_numel"}, element_size_{"element_size"};
};

}  // namespace

void add_fetch_waits(nb::module_& module) {
  nb::class_<FetchWaits>(module, "FetchWaits")
      .def(nb::init<SessionState&, ParamStatuses&>(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def_prop_ro("begins", hook_before<FetchWaits>([handle = Argument(0, "self")](
                                                         FetchWaits& waits, const CallArguments& call) {
                     return waits.begins(handle.of(call));
                   }))
      .def_prop_ro("ended", hook_after<FetchWaits>([](FetchWaits&, nb::handle wait, const CallArguments&) {
                     FetchWaits::ended(wait);
                   }));
}

}  // namespace shardscope::python
