#include <dlfcn.h>

#include <type_traits>

#include "kernels/cuda/cudnn_library.h"
#include "kernels/error.h"

namespace shardscope::kernels::cuda {
namespace {

// Name with the major version, within which function signatures are stable.
constexpr const char* kName = "libcudnn.so.9";

CudnnLibrary load(const char* kernel) {
  // Never closed: the functions are used until the process exits. RTLD_LOCAL hides its symbols from other
  // libraries.
  void* const library = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    throw_bad_argument(kernel, std::string(kName) + " cannot be loaded (" + (why == nullptr ? "" : why) +
                                   "): install cuDNN 9, or leave SHARDSCOPE_ATTENTION unset");
  }
  CudnnLibrary out;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) throw_bad_argument(kernel, std::string(kName) + " has no " + name);
  };
  // Checked first: an older library may lack other functions, and the version gives a better message.
  decltype(&::cudnnGetVersion) version = nullptr;
  find(version, "cudnnGetVersion");
  check_cudnn_version(version(), kernel);
  find(out.create, "cudnnCreate");
  find(out.destroy, "cudnnDestroy");
  find(out.set_stream, "cudnnSetStream");
  find(out.error_string, "cudnnGetErrorString");
  find(out.last_error, "cudnnGetLastErrorString");
  find(out.create_descriptor, "cudnnBackendCreateDescriptor");
  find(out.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  find(out.set_attribute, "cudnnBackendSetAttribute");
  find(out.get_attribute, "cudnnBackendGetAttribute");
  find(out.finalize, "cudnnBackendFinalize");
  find(out.execute, "cudnnBackendExecute");
  return out;
}

}  // namespace

const CudnnLibrary& cudnn_library(const char* kernel) {
  // Once per process; a failed load is retried by the next call.
  static const CudnnLibrary library = load(kernel);
  return library;
}

}  // namespace shardscope::kernels::cuda
