// Frames as they come off a socket. The first byte says whose: batches and tables of ranks, rank control,
// commands to ranks, viewers' requests, replies to viewers.
#include "instrumentation/wire.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope::instrumentation;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto from = static_cast<wire::From>(data[0] % 5);
  wire::Decoded decoded = wire::decode(data + 1, size - 1, from);
  shardscope::fuzz::must(decoded.message.has_value() == (decoded.reject == wire::Reject::none));
  if (!decoded.message) return 0;
  // What was accepted can be said again and is then the same.
  const wire::Frame again = wire::encode(*decoded.message);
  const wire::Decoded second = wire::decode(again.data(), again.size(), from);
  shardscope::fuzz::must(second.message.has_value());
  const wire::Frame third = wire::encode(*second.message);
  shardscope::fuzz::must(third.size() == again.size() &&
                         std::equal(third.data(), third.data() + third.size(), again.data()));
  return 0;
}
