#include "buckets.h"

#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "attribute.h"
#include "native_hook.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// Hooks of DeepSpeed's stage 3 for each gradient that becomes ready (zero3_gradients.py). Both arguments
/// must outlive this.
class GradientHooks {
 public:
  GradientHooks(SessionState& session, Buckets& buckets) : session_(session), buckets_(buckets) {}

  void comes(nb::handle param) { buckets_.comes(param); }
  void came() { buckets_.came(); }

  /// After __add_grad_to_ipg_bucket().
  void added(nb::handle optimizer, nb::handle param) {
    const std::uint32_t number = session_.params.of(param);
    if (number == SHARDSCOPE_NO_ID || !session_.started) return;
    const nb::object all = ipg_buckets_.of(optimizer);
    // DeepSpeed's own function is only called if there are several.
    PyObject *dtype = nullptr, *bucket = nullptr;
    Py_ssize_t at = 0;
    nb::object chosen_dtype, chosen_bucket;
    if (PyDict_Check(all.ptr()) == 0 || PyDict_Size(all.ptr()) != 1 ||
        PyDict_Next(all.ptr(), &at, &dtype, &bucket) == 0) {
      chosen_dtype = comm_dtype_.of(optimizer)(param);
      chosen_bucket = all[chosen_dtype];
    } else {
      chosen_dtype = nb::borrow(dtype);
      chosen_bucket = nb::borrow(bucket);
    }
    shardscope_bucket_add(open(optimizer, chosen_dtype), number, session_.elems(number),
                          elements_.as<std::int64_t>(chosen_bucket));
  }

  /// Before __reduce_and_partition_ipg_grads(), which does nothing for an empty bucket.
  void flush(nb::handle optimizer, nb::handle dtype) {
    const nb::object bucket = ipg_buckets_.of(optimizer)[dtype];
    const nb::object params = params_.of(bucket);
    if (nb::len(params) == 0 || !session_.started) return;
    std::vector<Part> parts;
    for (const nb::handle param : params) {
      const std::uint32_t number = session_.params.of(param);
      if (number != SHARDSCOPE_NO_ID) parts.emplace_back(number, session_.elems(number));
    }
    const auto elements = elements_.as<std::int64_t>(bucket);
    const bool too_large = elements > limit_.as<std::int64_t>(optimizer);
    const std::optional<std::uint8_t> reason =
        group_changes(optimizer, bucket) ? std::optional(std::uint8_t{SHARDSCOPE_FLUSH_GROUP_CHANGED})
                                         : std::nullopt;
    buckets_.flush_open(open(optimizer, dtype), nb::cast(Parts(std::move(parts))), elements, too_large,
                        reason);
    std::erase_if(open_, [&](const Open& each) { return each.is(optimizer, dtype); });
  }
  void flushed() { session_.purpose_served(); }

 private:
  /// Whether the gradient is reduced among other ranks than those in the bucket (expert
  /// parameters).
  [[nodiscard]] bool group_changes(nb::handle optimizer, nb::handle bucket) const {
    if (buckets_.coming.is_none()) return false;
    const nb::object held = process_group_.or_none(bucket), of = group_of_.or_none(optimizer);
    return !held.is_none() && !of.is_none() && !of(buckets_.coming).equal(held);
  }
  /// An open bucket: of an optimizer, by its address, and a type of elements, which is one object.
  struct Open {
    PyObject* optimizer;
    nb::object dtype;
    std::uint32_t number;

    [[nodiscard]] bool is(nb::handle of, nb::handle type) const {
      return of.ptr() == optimizer && type.is(dtype);
    }
  };
  std::uint32_t open(nb::handle optimizer, nb::handle dtype) {
    for (const Open& each : open_)
      if (each.is(optimizer, dtype)) return each.number;
    return open_.emplace_back(Open{optimizer.ptr(), nb::borrow(dtype), buckets_.next(0)}).number;
  }

  SessionState& session_;
  Buckets& buckets_;
  std::vector<Open> open_;
  Attribute comm_dtype_{"get_param_comm_dtype"}, ipg_buckets_{"ipg_buckets"}, elements_{"elements"},
      params_{"params"}, limit_{"reduce_bucket_size"}, process_group_{"process_group"},
      group_of_{"_get_param_partition_group"};
};

}  // namespace

void add_buckets(nb::module_& module) {
  using nb::arg;
  nb::class_<Buckets>(module, "Buckets")
      .def(nb::init<SessionState&>(), nb::keep_alive<1, 2>())
      .def("in_epilogue", [](Buckets& self, bool yes) { self.epilogue = yes; })
      .def_ro("coming", &Buckets::coming)
      .def("comes", &Buckets::comes)
      .def("came", &Buckets::came)
      .def("of", &Buckets::of, arg("key"), arg("buffer") = 0)
      .def("add", &Buckets::add, arg("key"), arg("param"), arg("elems"), arg("bucket_elems"),
           arg("buffer") = 0)
      .def("flush", &Buckets::flush, arg("key"), arg("parts"), arg("elems"), arg("too_large"),
           arg("reason") = nb::none());
  const Argument param(1, "param");
  nb::class_<GradientHooks>(module, "GradientHooks")
      .def(nb::init<SessionState&, Buckets&>(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def_prop_ro("comes",
                   hook_before<GradientHooks>([param](GradientHooks& hooks, const CallArguments& call) {
                     hooks.comes(param.of(call));
                   }))
      .def_prop_ro("came", hook_after<GradientHooks>(
                               [](GradientHooks& hooks, nb::handle, const CallArguments&) { hooks.came(); }))
      .def_prop_ro("added", hook_after<GradientHooks>(
                                [optimizer = Argument(0, "self"), param](GradientHooks& hooks, nb::handle,
                                                                         const CallArguments& call) {
                                  hooks.added(optimizer.of(call), param.of(call));
                                }))
      .def_prop_ro("flush", hook_before<GradientHooks>([optimizer = Argument(0, "self"),
                                                        dtype = Argument(1, "communication_data_type")](
                                                           GradientHooks& hooks, const CallArguments& call) {
                     hooks.flush(optimizer.of(call), dtype.of(call));
                   }))
      .def_prop_ro("flushed", hook_after<GradientHooks>([](GradientHooks& hooks, nb::handle,
                                                           const CallArguments&) { hooks.flushed(); }));
}

}  // namespace shardscope::python
