#include "gpu_records.h"

#include <dlfcn.h>
#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;

namespace shardscope::python {
namespace {

/// The functions declared in runtime/profile/attached/gpu.h.
struct Library {
  void (*record)(shardscope_run*, void*) = nullptr;
  void (*suspend)() = nullptr;
  void (*resume)() = nullptr;
  void (*stop)() = nullptr;
  std::string missing;  ///< why the library is missing; empty: it is loaded
};

Library load() {
  Library library;
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&load), &here);
  const std::string own = here.dli_fname != nullptr ? here.dli_fname : "";
  const std::string file = own.substr(0, own.rfind('/') + 1) + "libshardscope_gpu.so";
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    library.missing = "this package was built without CUPTI's headers";
    return library;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr) library.missing = file + " is of another version than this package";
  };
  find(library.record, "shardscope_gpu_record");
  find(library.suspend, "shardscope_gpu_suspend");
  find(library.resume, "shardscope_gpu_resume");
  find(library.stop, "shardscope_gpu_stop");
  return library;
}

/// Loaded once, and only in a run with a GPU.
const Library& library() {
  static const Library found = load();
  return found;
}

}  // namespace

void record_gpu_of(shardscope_run* run, std::uintptr_t compute) {
  if (!library().missing.empty()) throw nb::value_error(library().missing.c_str());
  library().record(run, reinterpret_cast<void*>(compute));
}

void add_gpu_records(nb::module_& module) {
  module.def("gpu_library_missing", [] { return library().missing; });
  const auto add = [&](const char* name, void (*Library::*function)()) {
    module.def(name, [function] {
      if (!library().missing.empty()) return;
      const nb::gil_scoped_release others_run;
      (library().*function)();
    });
  };
  add("suspend_gpu", &Library::suspend);
  add("resume_gpu", &Library::resume);
  add("stop_gpu", &Library::stop);
}

}  // namespace shardscope::python
