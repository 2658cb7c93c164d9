// `_core.NativeHook`: a hook of a Wrapper, called before or after a framework's function without a Python
// call.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace shardscope::python {

namespace nb = nanobind;

/// Arguments of a wrapped call, in the layout of Python's vectorcall: borrowed, valid during the call.
struct CallArguments {
  PyObject* const* values;  ///< positional arguments, then those named in `names`
  Py_ssize_t positional;
  PyObject* names;  ///< a tuple; null: none
};

/// One parameter of a wrapped function, by its position and its name.
class Argument {
 public:
  Argument(Py_ssize_t place, const char* name)
      : place_(place), name_(nb::steal(PyUnicode_InternFromString(name))) {}

  /// Throws std::runtime_error if it is missing.
  [[nodiscard]] nb::handle of(const CallArguments& call) const {
    const nb::handle found = find(call);
    if (!found.is_valid())
      throw std::runtime_error("called without " + std::string(nb::cast<const char*>(name_)));
    return found;
  }
  [[nodiscard]] bool is_true(const CallArguments& call, bool otherwise) const {
    const nb::handle found = find(call);
    if (!found.is_valid()) return otherwise;
    const int truth = PyObject_IsTrue(found.ptr());
    if (truth < 0) throw nb::python_error();
    return truth != 0;
  }

 private:
  [[nodiscard]] nb::handle find(const CallArguments& call) const {
    if (place_ < call.positional) return call.values[place_];
    const Py_ssize_t named = call.names == nullptr ? 0 : PyTuple_Size(call.names);
    for (Py_ssize_t i = 0; i < named; ++i) {
      PyObject* name = PyTuple_GetItem(call.names, i);
      if (name == name_.ptr() || PyUnicode_Compare(name, name_.ptr()) == 0)
        return call.values[call.positional + i];
    }
    return {};
  }

  Py_ssize_t place_;
  nb::object name_;
};

/// A hook before or after the function. Its exceptions turn the adapter off, like those of a hook in Python.
/// A Python call with keyword arguments takes 2 us after a matrix product has evicted the caches, and a step
/// of stage 3 makes a thousand.
struct NativeHook {
  std::function<nb::object(const CallArguments&)> before;  ///< its result is after()'s token
  std::function<void(nb::handle token, nb::handle result, const CallArguments&)> after;
};

/// For def_prop_ro: call(hooks, arguments) on the instance that has the property, which the hook keeps
/// alive.
template <typename Hooks, typename Call>
auto hook_before(Call call) {
  return [call](nb::object self) {
    auto* hooks = nb::inst_ptr<Hooks>(self);
    return NativeHook{.before = [self, hooks, call](const CallArguments& arguments) -> nb::object {
                        if constexpr (std::is_void_v<decltype(call(*hooks, arguments))>) {
                          call(*hooks, arguments);
                          return nb::none();
                        } else {
                          return call(*hooks, arguments);
                        }
                      },
                      .after = nullptr};
  };
}
/// The same; call(hooks, token, arguments).
template <typename Hooks, typename Call>
auto hook_after(Call call) {
  return [call](nb::object self) {
    auto* hooks = nb::inst_ptr<Hooks>(self);
    return NativeHook{
        .before = nullptr,
        .after = [self, hooks, call](nb::handle token, nb::handle, const CallArguments& arguments) {
          call(*hooks, token, arguments);
        }};
  };
}

/// The same for hooks of methods that need only the instance (self) of the call, or no argument at
/// all.
template <typename Hooks, typename Result>
auto before_self(Result (Hooks::*method)(nb::handle)) {
  return hook_before<Hooks>([method, of = Argument(0, "self")](Hooks& hooks, const CallArguments& call) {
    if constexpr (std::is_same_v<Result, bool>)
      return nb::object(nb::bool_((hooks.*method)(of.of(call))));
    else
      return (hooks.*method)(of.of(call));
  });
}
template <typename Hooks>
auto after_self(void (Hooks::*method)(nb::handle)) {
  return hook_after<Hooks>(
      [method, of = Argument(0, "self")](Hooks& hooks, nb::handle, const CallArguments& call) {
        (hooks.*method)(of.of(call));
      });
}
/// Only called if before() returned true.
template <typename Hooks>
auto after_self_if(void (Hooks::*method)(nb::handle)) {
  return hook_after<Hooks>(
      [method, of = Argument(0, "self")](Hooks& hooks, nb::handle token, const CallArguments& call) {
        if (token.ptr() == Py_True) (hooks.*method)(of.of(call));
      });
}
template <typename Hooks>
auto before_any(void (Hooks::*method)()) {
  return hook_before<Hooks>([method](Hooks& hooks, const CallArguments&) { (hooks.*method)(); });
}
template <typename Hooks>
auto after_any(void (Hooks::*method)()) {
  return hook_after<Hooks>([method](Hooks& hooks, nb::handle, const CallArguments&) { (hooks.*method)(); });
}

inline void add_native_hook(nb::module_& module) { nb::class_<NativeHook>(module, "NativeHook"); }

}  // namespace shardscope::python
