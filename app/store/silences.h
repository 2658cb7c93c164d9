// Intervals in which a rank sent nothing while its connection was open: its process was stopped (a signal, a
// debugger, a suspended virtual machine), or its host or network was. The collector records them as messages,
// so recordings and live runs have them alike; their texts are written and parsed here. The
// text about a rank that is gone is here too, because it ends a silence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::store {

struct Silence {
  std::uint32_t rank = 0;
  std::int64_t begin_ns = 0;    ///< last message before it
  std::int64_t end_ns = kOpen;  ///< it sends again, another process sends, or the rank is gone
  bool stopped = false;         ///< the process's state was seen as stopped, on the collector's host
  bool process_frozen = false;  ///< ended as on_this_host: no thread of the process ran
  [[nodiscard]] bool lasts() const noexcept { return end_ns == kOpen; }
};

/// In order of the messages.
[[nodiscard]] std::vector<Silence> silences(const Store& store);
/// The rank's silence that lasts at the store's end, regardless of rank_end().
[[nodiscard]] std::optional<Silence> silence_now(const Store& store, std::uint32_t rank);

/// "rank 2 has been silent for 6.0 s; its process 71 is stopped". `stopped_pid`: 0 where it is not known.
[[nodiscard]] std::string silent_message(std::uint32_t rank, double seconds, std::int32_t stopped_pid);
/// The duration in a silence message, nanoseconds; nullopt for other texts.
[[nodiscard]] std::optional<std::int64_t> silent_for(const Message& message) noexcept;
enum class Resumption : std::uint8_t {
  on_this_host,     ///< same process, on the collector's host: the network is not the reason
  on_another_host,  ///< same process
  restarted,        ///< another process
};
/// "rank 2 sends again after 21.2 s of silence; none of its threads ran".
[[nodiscard]] std::string resumption_message(std::uint32_t rank, double seconds, Resumption how);
[[nodiscard]] bool is_resumption_message(const Message& message) noexcept;
/// "rank 2 closed its connection without reporting its end"; recorded as an error. `why`: the
/// predicate.
[[nodiscard]] std::string gone_message(std::uint32_t rank, const std::string& why);
[[nodiscard]] bool is_gone_message(const Message& message) noexcept;

}  // namespace shardscope::store
