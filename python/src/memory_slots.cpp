#include "memory_slots.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "memory_level.h"
#include "shardscope/shardscope.h"
#include "wrapper.h"

namespace shardscope::python {
namespace {
constexpr std::uint8_t kDevice = 0, kHost = 1;
constexpr std::size_t kPatterns = 16;  ///< limit of cached sizes; with experts patterns often change
}  // namespace

Slot::Slot(std::uint8_t category, nb::object present, nb::object tensors, bool host, bool hooked,
           nb::object alike)
    : pool_(host ? kHost : kDevice),
      category_(category),
      present_(std::move(present)),
      tensors_(std::move(tensors)),
      host_(host),
      hooked_(hooked) {
  if (!alike.is_none()) alike_ = std::move(alike);
  if (nb::isinstance<HeldTensors>(tensors_)) held_ = nb::cast<HeldTensors*>(tensors_);
  if (nb::isinstance<AttributeIs>(present_)) state_ = nb::cast<const AttributeIs*>(present_);
}

Slot::Slot(std::uint8_t category, nb::object bytes)
    : pool_(kDevice), category_(category), kept_(std::move(bytes)) {}

nb::object Slot::tensors() const { return held_ != nullptr ? held_->tensors() : tensors_(); }

std::int64_t Slot::measured() const {
  if (held_ != nullptr) return held_->bytes();
  StorageBytes storages;
  for (const nb::handle tensor : tensors_()) storages.add(tensor);
  return storages.sum();
}

template <typename Measure>
std::int64_t Slot::by_pattern(bool quick, const Measure& measure) {
  if (present_.ptr() == Py_True) {
    const std::string* there = held_->look(quick);
    if (there == nullptr) return 0;
    const auto known = [&](const std::string& pattern) {
      return std::find_if(known_.begin(), known_.end(),
                          [&](const auto& each) { return each.first == pattern; });
    };
    if (const auto found = known(*there); quick && found != known_.end()) return found->second;
    std::string pattern = *there;
    const std::int64_t bytes = measure();
    if (known_.size() >= kPatterns) known_.clear();
    if (const auto found = known(pattern); found != known_.end())
      found->second = bytes;
    else
      known_.emplace_back(std::move(pattern), bytes);
    return bytes;
  }
  const nb::object pattern = state_ != nullptr ? nb::object(nb::bool_((*state_)())) : present_();
  const int any = PyObject_IsTrue(pattern.ptr());
  if (any < 0) throw nb::python_error();
  if (any == 0) return 0;
  if (quick) {
    PyObject* known = PyDict_GetItemWithError(sizes_.ptr(), pattern.ptr());
    if (known != nullptr) return nb::cast<std::int64_t>(nb::handle(known));
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
  }
  const std::int64_t bytes = measure();
  if (nb::len(sizes_) >= kPatterns) sizes_.clear();
  sizes_[pattern] = bytes;
  return bytes;
}

std::int64_t Slot::current_bytes() {
  if (kept_.is_valid()) return nb::cast<std::int64_t>(kept_());
  if (present_.is_none()) return measured();
  return by_pattern(true, [&] { return measured(); });
}

std::int64_t Slot::count(nb::handle add) {
  if (kept_.is_valid()) return current_bytes();
  const auto added = [&] {
    std::int64_t bytes = 0;
    for (const nb::handle tensor : tensors()) bytes += nb::cast<std::int64_t>(add(category_, tensor, host_));
    return bytes;
  };
  return present_.is_none() ? added() : by_pattern(false, added);
}

Slots::Slots(nb::list slots, nb::object level, nb::object toggle, nb::object failed)
    : level_(std::move(level)), toggle_(std::move(toggle)), failed_(std::move(failed)) {
  if (!is_switch(toggle_.ptr())) throw nb::type_error("Slots: `toggle` is a Switch");
  for (const nb::handle each : slots) {
    auto* slot = nb::cast<Slot*>(each);
    entries_.push_back({nb::borrow(each), slot, nb::object()});
    if (!slot->alike().is_valid()) continue;
    const auto same = [&](const Alike& some) { return some.slots.front()->alike().is(slot->alike()); };
    auto found = std::find_if(alike_.begin(), alike_.end(), same);
    if (found == alike_.end()) found = alike_.insert(found, Alike());
    found->slots.push_back(slot);
  }
}

void Slots::changed() {
  if (!switch_is_on(toggle_.ptr()) || shardscope_enabled(SHARDSCOPE_DETAIL_PARAMS) == 0) return;
  try {
    report_changes();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    (void)failed_(error.value());
  } catch (const std::exception& error) {
    (void)failed_(nb::borrow(PyExc_RuntimeError)(error.what()));
  }
}

void Slots::report_changes() {
  for (Entry& entry : entries_) {
    const std::int64_t bytes = entry.slot->current_bytes();
    if (bytes == entry.slot->now) continue;
    if (!entry.level.is_valid()) entry.level = level_(entry.slot->pool(), entry.slot->category());
    nb::cast<MemoryLevel&>(entry.level).add(bytes - entry.slot->now);
    entry.slot->now = bytes;
  }
}

void Slots::refresh() {
  for (const Entry& entry : entries_)
    if (!entry.slot->hooked() && !entry.slot->alike().is_valid())
      entry.slot->now = entry.slot->current_bytes();
  for (Alike& some : alike_) some.refresh();
}

void Slots::Alike::refresh() {
  const auto changed = [](Slot* slot) {
    const std::int64_t before = std::exchange(slot->now, slot->current_bytes());
    return before != slot->now;
  };
  bool all = slots.size() <= 3 || trusted >= kTrusted;
  for (const std::size_t at : {std::size_t{0}, slots.size() / 2, slots.size() - 1})
    all = all || changed(slots[at]);
  trusted = all ? 0 : trusted + 1;
  if (!all) return;
  for (Slot* slot : slots) (void)changed(slot);
}

nb::dict Slots::with(const nb::dict& fixed) const {
  std::vector<std::pair<const Slot*, std::int64_t>> sums;  // by pool and category: only a few
  for (const Entry& entry : entries_) {
    const Slot* slot = entry.slot;
    if (slot->now == 0) continue;
    const auto same = [&](const auto& sum) {
      return sum.first->pool() == slot->pool() && sum.first->category() == slot->category();
    };
    const auto found = std::find_if(sums.begin(), sums.end(), same);
    if (found != sums.end())
      found->second += slot->now;
    else
      sums.emplace_back(slot, slot->now);
  }
  nb::object all = nb::steal(PyDict_Copy(fixed.ptr()));
  if (!all.is_valid()) throw nb::python_error();
  for (const auto& [slot, bytes] : sums) {
    const nb::object key = slot->key();
    PyObject* before = PyDict_GetItemWithError(all.ptr(), key.ptr());
    if (before == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
    all[key] = bytes + (before == nullptr ? 0 : nb::cast<std::int64_t>(nb::handle(before)));
  }
  return nb::borrow<nb::dict>(all);
}

void add_memory_slots(nb::module_& module) {
  using nb::arg;
  nb::class_<AttributeIs>(module, "AttributeIs").def(nb::init<nb::object, const char*, nb::object>());
  nb::class_<Slot>(module, "Slot")
      .def(nb::init<std::uint8_t, nb::object, nb::object, bool, bool, nb::object>(), arg("category"),
           arg("present").none(), arg("tensors"), arg("host") = false, arg("hooked") = false,
           arg("alike").none() = nb::none())
      .def_static("kept",
                  [](std::uint8_t category, nb::object bytes) { return Slot(category, std::move(bytes)); })
      .def("current_bytes", &Slot::current_bytes)
      .def("count", &Slot::count)
      .def_prop_ro("key", &Slot::key)
      .def_prop_ro("hooked", &Slot::hooked)
      .def_rw("now", &Slot::now);
  nb::class_<Slots>(module, "Slots")
      .def(nb::init<nb::list, nb::object, nb::object, nb::object>())
      .def("changed", &Slots::changed)
      .def("refresh", &Slots::refresh)
      .def("with_fixed", &Slots::with);
}

}  // namespace shardscope::python
