#include "app/gui/model/live_notices.h"

#include <algorithm>
#include <cmath>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

std::string parts_text(std::uint64_t by_ranks, std::uint64_t by_collector, std::uint64_t messages,
                       std::uint64_t missed) {
  std::string out;
  const auto add = [&out](std::uint64_t number, const char* what) {
    if (number != 0) out += (out.empty() ? "" : ", ") + grouped(static_cast<std::int64_t>(number)) + what;
  };
  add(by_ranks, " events dropped by ranks");
  add(by_collector, " events shed by a collector");
  add(messages, messages == 1 ? " message lost on the way" : " messages lost on the way");
  add(missed, missed == 1 ? " chunk of events" : " chunks of events");
  if (missed != 0) out += " that the collector discarded before this window had it";
  return out;
}

}  // namespace

void LiveNotices::look(std::uint64_t run, const store::Losses& losses,
                       std::span<const store::Message> messages, const collector::Viewer::Traffic& traffic,
                       double seconds) {
  if (run_ != run) {
    *this = {};
    run_ = run;
    before_ = last_ = losses;
    missed_before_ = missed_ = traffic.items_missing;
    messages_ = messages.size();
  }
  if (losses.dropped > last_.dropped || losses.lost_messages > last_.lost_messages ||
      traffic.items_missing > missed_) {
    if (!lost_at_ || seconds - *lost_at_ > kShown) {
      before_ = last_;
      missed_before_ = missed_;
      lost_since_ = seconds;
    }
    lost_at_ = seconds;
  }
  last_ = losses;
  missed_ = traffic.items_missing;
  for (; messages_ < messages.size(); ++messages_) {
    if (messages[messages_].severity == ev::Severity::info) continue;
    said_ = messages[messages_];
    said_at_ = seconds;
  }
  messages_ = messages.size();
  waiting_bytes_ = traffic.waiting_bytes;
  at_collector_ = traffic.items_behind > 0;
  if (waiting_bytes_ == 0 && !at_collector_) {
    behind_since_.reset();
  } else if (!behind_since_) {
    behind_since_ = seconds;
  }
}

std::optional<LiveNotices::Notice> LiveNotices::at(double seconds) const {
  if (lost_at_ && seconds - *lost_at_ <= kShown) {
    const std::uint64_t dropped = last_.dropped - std::min(before_.dropped, last_.dropped);
    const std::uint64_t shed = std::min(dropped, last_.shed - std::min(before_.shed, last_.shed));
    const std::uint64_t messages = last_.lost_messages - std::min(before_.lost_messages, last_.lost_messages);
    const double ago = seconds - *lost_at_;
    const std::string when = ago < 2 ? "now" : decimal(std::floor(ago), 0) + " s ago";
    return Notice{
        "Events lost in the last " + decimal(std::max(1.0, std::ceil(seconds - lost_since_)), 0) + " s",
        parts_text(dropped - shed, shed, messages, missed_ - std::min(missed_before_, missed_)) + "; last " +
            when + ". They are gaps in the lanes; a lower level of detail sends fewer",
        true, "connection"};
  }
  if (said_ && seconds - said_at_ <= kShown)
    return Notice{said_->rank == ev::kNoId ? std::string("The run") : "Rank " + std::to_string(said_->rank),
                  said_->text, said_->severity == ev::Severity::error, "messages"};
  if (behind(seconds))
    return Notice{"This window is behind by " +
                      (waiting_bytes_ > 0 ? bytes(static_cast<std::int64_t>(waiting_bytes_)).text() +
                                                (at_collector_ ? " and what the collector has not sent" : "")
                                          : std::string("what the collector has not sent")),
                  "what it shows is late; the run is not slowed and its recording is complete", false,
                  "connection"};
  return std::nullopt;
}

}  // namespace shardscope::gui
