#include "app/store/recording_rows.h"

#include "app/store/crc32.h"

namespace shardscope::store {
namespace {

/// CRC of the values, each followed by a unit separator, so that ("ab", "c") and ("a", "bc") differ.
template <typename... Values>
std::uint32_t sum(const Values&... values) {
  std::string text;
  const auto add = [&](const auto& value) {
    if constexpr (std::is_convertible_v<decltype(value), std::string>) {
      text += value;
    } else {
      text += std::to_string(value);
    }
    text += '\x1f';
  };
  (add(values), ...);
  return crc32c(text);
}

}  // namespace

std::uint32_t row_crc(const RankRow& r) {
  return sum(r.rank, r.host, r.pid, static_cast<int>(r.connected), static_cast<int>(r.finished), r.exit_code,
             r.exit_message, r.events, r.dropped, r.lost_messages, r.clock_offset_ns, r.clock_residual_ns,
             r.gate.number, static_cast<int>(r.gate.kind), r.gate.id, static_cast<int>(r.gate.holding));
}

std::uint32_t row_crc(const Message& message, std::int64_t at_collector_ns) {
  return sum(message.rank, at_collector_ns, static_cast<int>(message.severity), message.text);
}

std::uint32_t row_crc(std::uint32_t rank, std::uint32_t id, const std::string& name) {
  return sum(rank, id, name);
}

}  // namespace shardscope::store
