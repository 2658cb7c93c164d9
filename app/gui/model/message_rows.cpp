#include "app/gui/model/message_rows.h"

#include <algorithm>
#include <cctype>

#include "app/gui/model/finding_place.h"
#include "app/gui/model/format.h"
#include "app/gui/model/step_of.h"
#include "app/store/control_text.h"

namespace shardscope::gui {

std::vector<std::size_t> matching_messages(std::span<const store::Message> messages, std::string_view words,
                                           instrumentation::Severity least) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].severity < least) continue;
    const std::string& text = messages[i].text;
    if (std::search(text.begin(), text.end(), words.begin(), words.end(), same) == text.end() &&
        !words.empty())
      continue;
    out.push_back(i);
  }
  return out;
}

std::vector<std::size_t> matching_messages(std::span<const store::Message> messages,
                                           const MessageFilter& filter) {
  std::vector<std::size_t> out = matching_messages(messages, filter.words, filter.least);
  const auto source_of = [](const store::Message& message) {
    if (store::is_about_control(message.text)) return MessageSource::commands;
    return message.rank == instrumentation::kNoId ? MessageSource::run : MessageSource::ranks;
  };
  std::erase_if(out, [&](std::size_t i) {
    const store::Message& message = messages[i];
    return (filter.rank && message.rank != *filter.rank) ||
           (filter.source != MessageSource::all && source_of(message) != filter.source);
  });
  return out;
}

Table message_table(const store::Store& store, std::span<const std::size_t> messages) {
  Table table;
  table.columns = {{"time", 0.16F, true, "Since the run's first event"},
                   {"step", 0.08F, true},
                   {"rank", 0.08F, true},
                   {"severity", 0.12F},
                   {"text", 1.0F}};
  for (const std::size_t i : messages) {
    const store::Message& message = store.messages()[i];
    const auto step = step_of(store.steps(), message.at_ns);
    const Tone tone = message.severity == instrumentation::Severity::error     ? Tone::bad
                      : message.severity == instrumentation::Severity::warning ? Tone::warning
                                                                               : Tone::muted;
    table.add({number_cell(static_cast<double>(message.at_ns), timestamp(message.at_ns, 100'000)),
               step ? number_cell(store.steps()[*step].step, std::to_string(store.steps()[*step].step))
                    : number_cell(std::nullopt, ""),
               message.rank != instrumentation::kNoId
                   ? number_cell(message.rank, std::to_string(message.rank))
                   : Cell{"run", -1.0, Tone::muted, {}, ""},
               {severity_word(message.severity), static_cast<double>(message.severity), tone, {}, ""},
               {message.text, {}, Tone::normal, {}, ""}});
  }
  return table;
}

}  // namespace shardscope::gui
