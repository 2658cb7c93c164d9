#include "held_tensors.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <utility>

namespace shardscope::python {
namespace {

/// Full checks that found no tensor, after which a few owners are checked: DeepSpeed 3 moves every gradient
/// away before a sample.
constexpr std::size_t kNone = 64;
constexpr std::size_t kAlike = 8;  ///< HeldTensors::pattern()

/// Known types, and whether their objects contain a local tensor that has the storage (DTensor).
bool wraps_local_tensor(PyTypeObject* type) {
  static std::vector<std::pair<nb::object, bool>>
      known;  // never freed: torch's types exist as long as Python does
  for (const auto& [seen, wraps] : known)
    if (seen.ptr() == reinterpret_cast<PyObject*>(type)) return wraps;
  const nb::object of = nb::borrow(reinterpret_cast<PyObject*>(type));
  const bool wraps = PyObject_HasAttrString(of.ptr(), "_local_tensor") == 1;
  known.emplace_back(of, wraps);
  return wraps;
}

}  // namespace

void StorageBytes::add(nb::handle tensor) {
  static const Attribute* const local = new Attribute("_local_tensor");
  static const Attribute* const storage_of = new Attribute("untyped_storage");
  static const Attribute* const nbytes = new Attribute("nbytes");
  static const Attribute* const data_ptr = new Attribute("data_ptr");
  nb::object own = nb::borrow(tensor);
  if (wraps_local_tensor(Py_TYPE(tensor.ptr()))) own = local->of(tensor);
  const nb::object storage = storage_of->call(own);
  const auto bytes = nb::cast<std::int64_t>(nbytes->call(storage));
  if (bytes == 0) return;
  sum_ += bytes;
  if (!first_.is_valid()) {  // a single tensor needs no set; usually there is only one
    first_ = storage;
    return;
  }
  const auto address = [&](nb::handle of) { return nb::cast<std::uintptr_t>(data_ptr->call(of)); };
  if (seen_.empty()) seen_.push_back(address(first_));
  const std::uintptr_t where = address(storage);
  if (std::find(seen_.begin(), seen_.end(), where) == seen_.end())
    seen_.push_back(where);
  else
    sum_ -= bytes;
}

HeldTensors::HeldTensors(nb::list owners, const std::string& path) {
  const nb::object gone = nb::cpp_function([this](nb::handle weak) {
    for (Owner& owner : owners_)
      if (owner.weak.is(weak)) owner.object = nullptr;
  });
  for (const nb::handle owner : owners) owners_.push_back({owner.ptr(), nb::weakref(owner, gone)});
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    path_.emplace_back(name.c_str());
    all_.push_back(name == "*");
    begin = end + 1;
  }
}

template <typename Visit>
void HeldTensors::walk(nb::object object, std::size_t from, const Visit& visit) const {
  for (std::size_t i = from; i < path_.size(); ++i) {
    if (object.is_none()) return;
    if (all_[i]) {
      for (const nb::handle element : object) walk(nb::borrow(element), i + 1, visit);
      return;
    }
    object = path_[i].or_none(object);
  }
  if (!object.is_none()) visit(object);
}

template <typename Visit>
void HeldTensors::each(const Visit& visit) const {
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (owners_[i].object == nullptr) continue;
    walk(nb::borrow(owners_[i].object), 0, [&](nb::handle tensor) { visit(i, tensor); });
  }
}

bool HeldTensors::has(std::size_t owner) const {
  bool there = false;
  if (PyObject* object = owners_[owner].object; object != nullptr)
    walk(nb::borrow(object), 0, [&](nb::handle) { there = true; });
  return there;
}

bool HeldTensors::none_as_before() const {
  const auto same = [&](std::size_t owner) { return has(owner) == (there_[owner] != '\0'); };
  return found_none_ >= kNone && same(0) && same(there_.size() / 2) && same(there_.size() - 1);
}

template <typename Has>
std::size_t HeldTensors::state_of_checked(const Has& has) const {
  const auto bit = [&](std::size_t owner) { return static_cast<std::size_t>(has(owner)); };
  return bit(seen_.front()) | bit(seen_[seen_.size() / 2]) << 1 | bit(seen_.back()) << 2;
}

void HeldTensors::check_all() {
  std::string there(owners_.size(), '\0');
  each([&](std::size_t owner, nb::handle) { there[owner] = '\1'; });
  there_ = std::move(there);
  trusted_ = 0;
  found_none_ = there_.find('\1') == std::string::npos ? found_none_ + 1 : 0;
  for (std::size_t owner = 0; owner < there_.size(); ++owner) {
    if (there_[owner] == '\0') continue;
    const auto at = std::lower_bound(seen_.begin(), seen_.end(), owner);
    if (at != seen_.end() && *at == owner) continue;
    seen_.insert(at, owner);
    likely_ = {};  // other owners may be checked now
  }
  if (seen_.empty()) return;
  Likely& likely = likely_[state_of_checked([&](std::size_t owner) { return there_[owner] != '\0'; })];
  likely.alike = likely.pattern == there_ ? likely.alike + 1 : 1;
  likely.pattern = there_;
  likely.used = 0;
}

const std::string* HeldTensors::look(bool quick) {
  if (!quick || there_.empty() || trusted_ >= kTrusted) {
    check_all();
  } else if (seen_.empty()) {
    ++trusted_;
    if (!none_as_before()) check_all();
  } else {
    ++trusted_;
    const std::size_t before = state_of_checked([&](std::size_t owner) { return there_[owner] != '\0'; });
    const std::size_t now = state_of_checked([&](std::size_t owner) { return has(owner); });
    Likely& likely = likely_[now];
    if (now != before && likely.alike >= kAlike && ++likely.used <= kTrusted)
      there_ = likely.pattern;
    else if (now != before)
      check_all();
  }
  return there_.find('\1') == std::string::npos ? nullptr : &there_;
}

nb::object HeldTensors::pattern(bool quick) {
  const std::string* there = look(quick);
  return there == nullptr ? nb::object(nb::none()) : nb::bytes(there->data(), there->size());
}

nb::list HeldTensors::tensors() const {
  nb::list all;
  each([&](std::size_t, nb::handle tensor) { all.append(tensor); });
  return all;
}

std::int64_t HeldTensors::bytes() const {
  StorageBytes storages;
  each([&](std::size_t, nb::handle tensor) { storages.add(tensor); });
  return storages.sum();
}

void add_held_tensors(nb::module_& module) {
  nb::class_<HeldTensors>(module, "HeldTensors")
      .def(nb::init<nb::list, const std::string&>(), nb::arg("owners"), nb::arg("path"))
      .def("pattern", &HeldTensors::pattern, nb::arg("quick") = false)
      .def("tensors", &HeldTensors::tensors)
      .def("bytes", &HeldTensors::bytes);
}

}  // namespace shardscope::python
