// Messages of a run as rows of a table.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "app/gui/model/table.h"
#include "app/store/store.h"

namespace shardscope::gui {

/// Indices of those that are at least so severe and hold the words, upper and lower case being the same.
[[nodiscard]] std::vector<std::size_t> matching_messages(std::span<const store::Message> messages,
                                                         std::string_view words,
                                                         instrumentation::Severity least);
/// Columns: time, step, rank, severity, text.
[[nodiscard]] Table message_table(const store::Store& store, std::span<const std::size_t> messages);

}  // namespace shardscope::gui
