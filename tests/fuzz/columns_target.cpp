// The columns of a chunk behind their checksums and compression: one section, or events of the state apart.
// What is accepted is written again and reads back the same, whole and by its parts.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "app/store/chunk_columns.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/take.h"

using namespace shardscope;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

bool same(const std::vector<instrumentation::Event>& a, const std::vector<instrumentation::Event>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.ticks == y.ticks && x.kind == y.kind && x.stream == y.stream && x.code == y.code && x.a == y.a &&
           x.b == y.b && x.c == y.c && x.v0 == y.v0 && x.v1 == y.v1;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  store::ChunkColumns columns;
  const std::size_t count = input.number<std::uint16_t>();
  columns.state_events = std::min<std::size_t>(input.number<std::uint16_t>(), count);
  columns.states = bytes_of(input.block());
  columns.others = bytes_of(input.block());
  try {
    const auto events = store::decode_columns(columns, count);
    fuzz::must(events.size() == count);
    const std::size_t others = store::decode_others(columns.others, count, columns.state_events).size();
    fuzz::must(others == count - columns.state_events);
    if (columns.state_events > 0) {
      fuzz::must(store::decode_states(columns.states, columns.state_events).size() == columns.state_events);
    }
    for (const bool apart : {false, true}) {
      fuzz::must(same(store::decode_columns(store::encode_columns(events, apart), count), events));
    }
  } catch (const std::runtime_error&) {
  }
  return 0;
}
