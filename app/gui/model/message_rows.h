// Messages of a run as table rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/table.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Sender: a rank, the collector or the run as a whole, or a viewer that sent a command.
enum class MessageSource : std::uint8_t { all, ranks, run, commands };
struct MessageFilter {
  std::string words;  ///< case is ignored
  instrumentation::Severity least{};
  MessageSource source = MessageSource::all;
  std::optional<std::uint32_t> rank;
  friend bool operator==(const MessageFilter&, const MessageFilter&) = default;
};
/// Indices of the messages that pass the filter.
[[nodiscard]] std::vector<std::size_t> matching_messages(std::span<const store::Message> messages,
                                                         const MessageFilter& filter);
/// Indices of the messages with at least this severity that contain the words, ignoring case.
[[nodiscard]] std::vector<std::size_t> matching_messages(std::span<const store::Message> messages,
                                                         std::string_view words,
                                                         instrumentation::Severity least);
/// Columns: time, step, rank, severity, text.
[[nodiscard]] Table message_table(const store::Store& store, std::span<const std::size_t> messages);

}  // namespace shardscope::gui
