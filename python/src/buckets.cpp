#include "buckets.h"

#include <nanobind/stl/optional.h>

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// What DeepSpeed's stage 3 does with each gradient as it comes (zero3_gradients.py). `buckets` must outlive
/// this.
class GradientHooks {
 public:
  GradientHooks(nb::object session, Buckets& buckets) : session_(std::move(session)), buckets_(buckets) {}

  void comes(nb::handle, nb::handle param) { buckets_.comes(param); }
  void came(nb::handle, nb::handle, nb::handle, nb::handle) { buckets_.came(); }

  /// After __add_grad_to_ipg_bucket().
  void added(nb::handle, nb::handle, nb::handle optimizer, nb::handle param) {
    const std::uint32_t number = session_.param(param);
    if (number == SHARDSCOPE_NO_ID || !session_.started()) return;
    const nb::object dtype = comm_dtype_.of(optimizer)(param);
    const nb::object bucket = ipg_buckets_.of(optimizer)[dtype];
    const nb::object id = nb::steal(PyLong_FromVoidPtr(optimizer.ptr()));
    buckets_.add(nb::make_tuple(id, dtype), number, numel_.as<std::int64_t>(param),
                 elements_.as<std::int64_t>(bucket), 0);
  }

 private:
  Session session_;
  Buckets& buckets_;
  Attribute comm_dtype_{"get_param_comm_dtype"}, ipg_buckets_{"ipg_buckets"}, elements_{"elements"},
      numel_{"ds_numel"};
};

}  // namespace

void add_buckets(nb::module_& module) {
  using nb::arg;
  nb::class_<Buckets>(module, "Buckets")
      .def(nb::init<nb::object>())
      .def("in_epilogue", [](Buckets& self, bool yes) { self.epilogue = yes; })
      .def_ro("coming", &Buckets::coming)
      .def("comes", &Buckets::comes)
      .def("came", &Buckets::came)
      .def("of", &Buckets::of, arg("key"), arg("buffer") = 0)
      .def("add", &Buckets::add, arg("key"), arg("param"), arg("elems"), arg("bucket_elems"),
           arg("buffer") = 0)
      .def("flush", &Buckets::flush, arg("key"), arg("parts"), arg("elems"), arg("too_large"),
           arg("reason") = nb::none());
  nb::class_<GradientHooks>(module, "GradientHooks")
      .def(nb::init<nb::object, Buckets&>(), nb::keep_alive<1, 3>())
      .def("comes", &GradientHooks::comes, arg().none(), arg("param"))
      .def("came", &GradientHooks::came, arg().none(), arg().none(), arg().none(), arg("param"))
      .def("added", &GradientHooks::added, arg().none(), arg().none(), arg().none(), arg("param"));
}

}  // namespace shardscope::python
