// Messages of a run as rows of a table.
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

/// Who said it: a rank, the collector or the run as a whole, or a viewer that commanded the run.
enum class MessageSource : std::uint8_t { all, ranks, run, commands };
struct MessageFilter {
  std::string words;  ///< upper and lower case being the same
  instrumentation::Severity least{};
  MessageSource source = MessageSource::all;
  std::optional<std::uint32_t> rank;
  friend bool operator==(const MessageFilter&, const MessageFilter&) = default;
};
/// Indices of those that pass all of it.
[[nodiscard]] std::vector<std::size_t> matching_messages(std::span<const store::Message> messages,
                                                         const MessageFilter& filter);
/// Indices of those that are at least so severe and hold the words, upper and lower case being the same.
[[nodiscard]] std::vector<std::size_t> matching_messages(std::span<const store::Message> messages,
                                                         std::string_view words,
                                                         instrumentation::Severity least);
/// Columns: time, step, rank, severity, text.
[[nodiscard]] Table message_table(const store::Store& store, std::span<const std::size_t> messages);

}  // namespace shardscope::gui
