#include "app/store/names.h"

#include <array>
#include <cstddef>

namespace shardscope::store {

const char* status_name(unsigned status) noexcept {
  static constexpr std::array kNames{"not_available", "in_flight", "available"};
  return status < kNames.size() ? kNames[status] : "unknown";
}

}  // namespace shardscope::store
