#include "fetch_counters.h"

#include <Python.h>
#include <nanobind/nanobind.h>

#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "native_hook.h"
#include "shardscope/shardscope.h"

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// DeepSpeed's eight fetch counters (PartitionedParameterProfiler), by micro-step. In C++ because the
/// profiler is called twice for every module of every pass.
class FetchCounters {
 public:
  /// After stop_event(self, name, num_elem).
  void counted(nb::handle name, std::int64_t num_elem) {
    const std::size_t code = code_of(name);
    if (code == kNames.size()) return;
    ++counters_[code].count;
    counters_[code].elems += num_elem;
  }
  /// The profiler resets at each root forward: an evaluation's fetches belong to no micro-step.
  void clear() { counters_ = {}; }
  /// At the end of a backward: emits the counters of its micro-step.
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

  /// Index of a name; kNames.size() if unknown. Each name is compared once and then found by its identity.
  std::size_t code_of(nb::handle name) {
    for (const auto& [known, code] : codes_)
      if (name.is(known)) return code;
    std::size_t code = 0;
    while (code < kNames.size() && !is(name, kNames[code])) ++code;
    if (codes_.size() < 2 * kNames.size()) codes_.emplace_back(nb::borrow(name), code);
    return code;
  }
  /// Names are members of a string enumeration; upper or lower case depends on the version.
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
  std::vector<std::pair<nb::object, std::size_t>> codes_;
};

}  // namespace

void add_fetch_counters(nb::module_& module) {
  nb::class_<FetchCounters>(module, "FetchCounters")
      .def(nb::init<>())
      .def_prop_ro("counted", hook_after<FetchCounters>(
                                  [name = Argument(1, "name"), elems = Argument(2, "num_elem")](
                                      FetchCounters& counters, nb::handle, const CallArguments& call) {
                                    counters.counted(name.of(call), nb::cast<std::int64_t>(elems.of(call)));
                                  }))
      .def("clear", &FetchCounters::clear)
      .def("emit", &FetchCounters::emit);
}

}  // namespace shardscope::python
