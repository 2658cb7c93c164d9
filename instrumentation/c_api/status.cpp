#include "instrumentation/c_api/status.h"

#include <array>
#include <cstdio>
#include <new>

namespace shardscope::instrumentation::c_api {

namespace {
/// Of fixed size, so that running out of memory can be reported too.
thread_local std::array<char, 512> t_words{};
}  // namespace

void remember(const char* words) noexcept { std::snprintf(t_words.data(), t_words.size(), "%s", words); }

shardscope_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    remember(failure.what());
    return failure.status();
  } catch (const std::bad_alloc&) {
    remember("out of memory");
    return SHARDSCOPE_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    remember(error.what());
    return SHARDSCOPE_FAILED;
  } catch (...) {
    remember("unknown failure");
    return SHARDSCOPE_FAILED;
  }
}

}  // namespace shardscope::instrumentation::c_api

extern "C" {

SHARDSCOPE_API uint32_t shardscope_abi_version(void) { return SHARDSCOPE_ABI_VERSION; }

SHARDSCOPE_API const char* shardscope_version(void) { return SHARDSCOPE_VERSION; }

SHARDSCOPE_API const char* shardscope_last_error(void) {
  return shardscope::instrumentation::c_api::t_words.data();
}

}  // extern "C"
