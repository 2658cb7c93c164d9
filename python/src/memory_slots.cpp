#include "memory_slots.h"

#include <utility>

#include "memory_level.h"

namespace shardscope::python {
namespace {
constexpr std::uint8_t kDevice = 0, kHost = 1;
constexpr std::size_t kPatterns = 16;  ///< sizes remembered; with experts every sample may find other tensors
}  // namespace

Slot::Slot(std::uint8_t category, nb::object present, nb::object tensors, bool host, bool hooked)
    : pool_(host ? kHost : kDevice),
      category_(category),
      present_(std::move(present)),
      tensors_(std::move(tensors)),
      host_(host),
      hooked_(hooked) {
  if (nb::isinstance<HeldTensors>(tensors_)) held_ = nb::cast<HeldTensors*>(tensors_);
}

Slot::Slot(std::uint8_t category, nb::object bytes)
    : pool_(kDevice), category_(category), kept_(std::move(bytes)) {}

nb::object Slot::present(bool quick) const {
  return present_.ptr() == Py_True ? held_->pattern(quick) : present_();
}
nb::object Slot::tensors() const { return held_ != nullptr ? held_->tensors() : tensors_(); }

std::int64_t Slot::measured() const {
  if (held_ != nullptr) return held_->bytes();
  StorageBytes storages;
  for (const nb::handle tensor : tensors_()) storages.add(tensor);
  return storages.sum();
}

std::int64_t Slot::remember(nb::handle pattern, std::int64_t bytes) {
  if (nb::len(sizes_) >= kPatterns) sizes_.clear();
  sizes_[pattern] = bytes;
  return bytes;
}

std::int64_t Slot::current_bytes() {
  if (kept_.is_valid()) return nb::cast<std::int64_t>(kept_());
  if (present_.is_none()) return measured();
  const nb::object pattern = present(true);
  const int any = PyObject_IsTrue(pattern.ptr());
  if (any < 0) throw nb::python_error();
  if (any == 0) return 0;
  PyObject* known = PyDict_GetItemWithError(sizes_.ptr(), pattern.ptr());
  if (known != nullptr) return nb::cast<std::int64_t>(nb::handle(known));
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return remember(pattern, measured());
}

std::int64_t Slot::count(nb::handle add) {
  if (kept_.is_valid()) return current_bytes();
  const nb::object pattern = present_.is_none() ? nb::object(nb::bool_(true)) : present(false);
  const int any = PyObject_IsTrue(pattern.ptr());
  if (any < 0) throw nb::python_error();
  if (any == 0) return 0;
  std::int64_t bytes = 0;
  for (const nb::handle tensor : tensors()) bytes += nb::cast<std::int64_t>(add(category_, tensor, host_));
  return remember(pattern, bytes);
}

Slots::Slots(nb::list slots, nb::object level) : level_(std::move(level)) {
  for (const nb::handle each : slots) {
    auto* slot = nb::cast<Slot*>(each);
    entries_.push_back({nb::borrow(each), slot, slot->key(), nb::object()});
  }
}

void Slots::changed() {
  for (Entry& entry : entries_) {
    const std::int64_t bytes = entry.slot->current_bytes();
    if (bytes == entry.slot->now) continue;
    if (!entry.level.is_valid()) entry.level = level_(entry.key[0], entry.key[1]);
    nb::cast<MemoryLevel&>(entry.level).add(bytes - entry.slot->now);
    entry.slot->now = bytes;
  }
}

void Slots::refresh() {
  for (const Entry& entry : entries_)
    if (!entry.slot->hooked()) entry.slot->now = entry.slot->current_bytes();
}

nb::dict Slots::sums() const {
  nb::dict all;
  for (const Entry& entry : entries_) {
    if (entry.slot->now == 0) continue;
    const std::int64_t before = all.contains(entry.key) ? nb::cast<std::int64_t>(all[entry.key]) : 0;
    all[entry.key] = before + entry.slot->now;
  }
  return all;
}

void add_memory_slots(nb::module_& module) {
  using nb::arg;
  nb::class_<Slot>(module, "Slot")
      .def(nb::init<std::uint8_t, nb::object, nb::object, bool, bool>(), arg("category"),
           arg("present").none(), arg("tensors"), arg("host") = false, arg("hooked") = false)
      .def_static("kept",
                  [](std::uint8_t category, nb::object bytes) { return Slot(category, std::move(bytes)); })
      .def("current_bytes", &Slot::current_bytes)
      .def("count", &Slot::count)
      .def_prop_ro("key", &Slot::key)
      .def_prop_ro("hooked", &Slot::hooked)
      .def_rw("now", &Slot::now);
  nb::class_<Slots>(module, "Slots")
      .def(nb::init<nb::list, nb::object>())
      .def("changed", &Slots::changed)
      .def("refresh", &Slots::refresh)
      .def("sums", &Slots::sums);
}

}  // namespace shardscope::python
