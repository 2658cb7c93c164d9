#include "fetch_counters.h"

#include <Python.h>
#include <nanobind/nanobind.h>

#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shardscope/shardscope.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// DeepSpeed's eight counters of fetches (PartitionedParameterProfiler), by micro-step. In C++ because its
/// profiler is called twice for every module of every pass.
class FetchCounters {
 public:
  /// After stop_event(self, name, num_elem).
  void counted(nb::handle, nb::handle, nb::handle, nb::handle name, std::int64_t num_elem) {
    for (std::size_t code = 0; code < kNames.size(); ++code) {
      if (!is(name, kNames[code])) continue;
      ++counters_[code].count;
      counters_[code].elems += num_elem;
      return;
    }
  }
  /// At the end of a backward: what its micro-step fetched.
  void emit(std::uint32_t micro_step, std::uint32_t step) {
    for (std::size_t code = 0; code < kNames.size(); ++code) {
      const Counter counter = counters_[code];
      if (counter.count == 0) continue;
      shardscope_fetch_counter(static_cast<std::uint8_t>(code), micro_step, step, counter.count,
                               counter.elems);
      counters_[code] = {};
    }
  }

 private:
  struct Counter {
    std::uint32_t count = 0;
    std::int64_t elems = 0;
  };
  static constexpr std::array<const char*, 8> kNames{
      "forward_fetch_submit",  "forward_fetch_wait",  "forward_prefetch_submit",  "forward_all_gather",
      "backward_fetch_submit", "backward_fetch_wait", "backward_prefetch_submit", "backward_all_gather"};

  /// Names are the members of an enumeration of strings, in capitals or not by version.
  [[nodiscard]] static bool is(nb::handle name, std::string_view known) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
    if (text == nullptr) throw nb::python_error();
    if (static_cast<std::size_t>(size) != known.size()) return false;
    for (std::size_t i = 0; i < known.size(); ++i)
      if (std::tolower(static_cast<unsigned char>(text[i])) != known[i]) return false;
    return true;
  }

  std::array<Counter, 8> counters_{};
};

}  // namespace

void add_fetch_counters(nb::module_& module) {
  using nb::arg;
  nb::class_<FetchCounters>(module, "FetchCounters")
      .def(nb::init<>())
      .def("counted", &FetchCounters::counted, arg().none(), arg().none(), arg().none(), arg("name"),
           arg("num_elem"))
      .def("emit", &FetchCounters::emit);
}

}  // namespace shardscope::python
