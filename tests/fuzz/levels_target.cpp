// Levels of detail, blocks, statuses and tiles as a recording holds them, behind their checksum and
// compression. The first byte of an input says which.
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "app/store/block.h"
#include "app/store/packed.h"
#include "app/store/tile.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;

namespace {

void look(const store::DensityPyramid& levels) {
  std::vector<store::DensityBucket> columns(7);
  levels.add_to({.begin_ns = 0, .end_ns = 1'000'000, .columns = columns});
  (void)levels.total();
}

void look(const store::BlockPage& page) {
  for (const auto& lane : page.lanes) {
    for (const store::DensityPyramid& row : lane) look(row);
  }
  look(page.waits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input = fuzz::text_of(data + 1, size - 1);
  const auto* const begin = reinterpret_cast<const std::byte*>(input.data());
  const std::vector<std::byte> packed = store::pack({begin, begin + input.size()});
  try {
    switch (data[0] % 4) {
      case 0:
        look(store::decode_tile(packed.data(), packed.size()));
        break;
      case 1:
        look(store::decode_page(packed.data(), packed.size()));
        break;
      case 2:
        (void)store::decode_block(packed.data(), packed.size());
        break;
      default:
        (void)store::decode_statuses(packed.data(), packed.size());
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
