#include "memory_level.h"

#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// Sets every level of `levels` ((pool, category) -> MemoryLevel): to its bytes in `all`, or to 0. Decreases
/// first, so that the pool's total is never above its real maximum.
void set_levels(const nb::dict& levels, const nb::dict& all) {
  std::vector<std::pair<MemoryLevel*, std::int64_t>> set;
  PyObject *key = nullptr, *level = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(levels.ptr(), &at, &key, &level) != 0;) {
    PyObject* known = PyDict_GetItemWithError(all.ptr(), key);
    if (known == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
    const std::int64_t bytes = known == nullptr ? 0 : nb::cast<std::int64_t>(nb::handle(known));
    set.emplace_back(&nb::cast<MemoryLevel&>(nb::handle(level)), bytes);
  }
  const auto increase = [](const auto& each) { return each.second - each.first->bytes(); };
  std::stable_sort(set.begin(), set.end(),
                   [&](const auto& one, const auto& other) { return increase(one) < increase(other); });
  // Also an unchanged one: the event of an earlier change may have been dropped.
  for (const auto& [of, bytes] : set) of->set(bytes);
}

}  // namespace

void add_memory_level(nb::module_& module) {
  nb::class_<MemoryLevel>(module, "MemoryLevel")
      .def(nb::init<std::uint8_t, std::uint8_t>())
      .def("add", &MemoryLevel::add)
      .def("set", &MemoryLevel::set)
      .def_prop_ro("bytes", &MemoryLevel::bytes);
  module.def("set_levels", &set_levels);
}

}  // namespace shardscope::python
