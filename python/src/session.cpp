#include "session.h"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attribute.h"
#include "collective_lane.h"

namespace shardscope::python {
namespace {

nb::object purpose_of(const SessionState& state) {
  if (!state.purpose) return nb::none();
  return nb::make_tuple(state.purpose->lane, state.purpose->id, state.purpose->parts);
}
void set_purpose(SessionState& state, nb::object purpose) {
  if (purpose.is_none())
    state.purpose.reset();
  else
    state.purpose =
        Purpose{nb::cast<std::uint8_t>(purpose[0]), nb::cast<std::uint32_t>(purpose[1]), purpose[2]};
}

std::uint32_t number_of(const NumberTable& table, std::uintptr_t key) {
  const std::uint32_t number = table.of(key);
  if (number == SHARDSCOPE_NO_ID) throw nb::key_error(std::to_string(key).c_str());
  return number;
}

}  // namespace

std::optional<bool> SessionState::outcome_of(const Unfinished& collective) const {
  // Asked at the begin of every module's span while a collective runs.
  static const Attribute* const is_completed = new Attribute("is_completed");
  const nb::object& work = collective.work;
  if (work.is_none()) return false;
  try {
    const int complete = PyObject_IsTrue(is_completed->call(work).ptr());
    if (complete < 0) throw nb::python_error();
    if (complete == 0) {
      if (!collective.returned) return std::nullopt;
      *collective.silent = true;
      return false;
    }
    if (has_exception(work)) return true;
    // Gloo's send or receive is complete once the training has waited for it, and has an exception if that
    // raised. A second wait would wait for another message.
    const std::uint8_t op = nb::cast<const CollectiveEnded&>(collective.ended).which->op;
    if (op == SHARDSCOPE_SEND || op == SHARDSCOPE_RECEIVE) return false;
    // A second wait would copy the output again after the call returned, and make a device's stream wait.
    return !collective.returned && collective.on_host && !on_device && failed(work, Result::work);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return true;  // one that raises is dropped and must not block the others
  }
}

void SessionState::poll() {
  if (unfinished.empty()) return;
  std::vector<Unfinished> asked = std::exchange(unfinished, {});
  for (auto each = asked.begin(); each != asked.end(); ++each) {
    std::optional<bool> by_error;
    try {
      by_error = outcome_of(*each);
    } catch (...) {  // an interrupt: the rest is polled again
      std::move(each, asked.end(), std::back_inserter(unfinished));
      throw;
    }
    if (by_error)
      (void)each->ended(*by_error);
    else
      unfinished.push_back(std::move(*each));
  }
}

void SessionState::waited_for(std::uint8_t lane, std::uint32_t owner) {
  if (on_device) return;  // there only a stream waits
  std::vector<nb::object> complete;
  for (std::size_t at = 0; at < unfinished.size();) {
    const auto& ended = nb::cast<const CollectiveEnded&>(unfinished[at].ended);
    if (ended.lane->number() == lane && ended.which->owner == owner) {
      complete.push_back(std::move(unfinished[at].ended));
      unfinished.erase(unfinished.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      ++at;
    }
  }
  for (const nb::object& ended : complete) (void)ended(false);  // otherwise the wait would have raised
}

void add_session(nb::module_& module) {
  using nb::arg;
  nb::class_<NumberTable>(module, "Numbers")
      .def("__getitem__", &number_of)
      .def("__setitem__", &NumberTable::set)
      .def("__contains__",
           [](const NumberTable& table, std::uintptr_t key) { return table.of(key) != SHARDSCOPE_NO_ID; })
      .def("__len__", &NumberTable::size)
      .def(
          "get",
          [](const NumberTable& table, std::uintptr_t key, nb::object otherwise) {
            const std::uint32_t number = table.of(key);
            return number == SHARDSCOPE_NO_ID ? otherwise : nb::object(nb::int_(number));
          },
          arg("key"), arg("otherwise").none() = nb::none())
      .def(
          "pop", [](NumberTable& table, std::uintptr_t key, nb::handle) { table.erase(key); }, arg("key"),
          arg("otherwise").none());
  nb::class_<ElemCounts>(module, "ElemCounts")
      .def("__getitem__", [](const ElemCounts& elems, std::size_t param) { return elems.all.at(param); })
      .def("append", [](ElemCounts& elems, std::int64_t count) { elems.all.push_back(count); });
  using State = SessionState;
  nb::class_<State>(module, "SessionState")
      .def(nb::init<>())
      .def("reset", &State::reset)
      .def_rw("started", &State::started)
      .def_rw("keeping", &State::keeping)
      .def_rw("on_device", &State::on_device)
      .def_rw("in_micro_step", &State::in_micro_step)
      .def_rw("phase", &State::phase, arg("phase").none())
      .def_rw("step", &State::step)
      .def_rw("micro_step", &State::micro_step)
      .def_rw("gathers", &State::gathers)
      .def_rw("buckets", &State::buckets)
      .def_rw("sequence", &State::sequence)
      .def_rw("models_described", &State::models)
      .def_rw("available", &State::available)
      .def_prop_rw("purpose", &purpose_of, &set_purpose, arg("purpose").none())
      .def_rw("all_reduce_lane", &State::all_reduce_lane, arg("lane").none())
      .def_ro("modules", &State::modules)
      .def_ro("params", &State::params)
      .def_ro("spans", &State::spans)
      .def_ro("param_elems", &State::param_elems)
      .def("poll", &State::poll)
      .def("waited_for", &State::waited_for)
      .def(  // for tests: the package's hooks call it in C++
          "wait_for",
          [](State& state, nb::object work, nb::object ended) {
            state.wait_for({std::move(work), std::move(ended), true, false, nullptr});
          },
          arg("work").none(), arg("ended"))
      .def("issued", &State::issued)
      .def("purpose_served", &State::purpose_served)
      .def("begin_span", &State::begin_span)
      .def("end_span", &State::end_span);
}

}  // namespace shardscope::python
