#include "runtime/base/checksum.h"

#include <xxhash.h>

namespace shardscope::base {

std::uint64_t checksum(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace shardscope::base
