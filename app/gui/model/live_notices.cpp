#include "app/gui/model/live_notices.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/gui/model/format.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

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
  if (missed != 0) out += " that the collector discarded before this window received it";
  return out;
}

}  // namespace

void LiveNotices::look(const Seen& now, double seconds) {
  if (run_ != now.run) {
    *this = {};
    run_ = now.run;
  }
  const bool first = !std::exchange(caught_up_, caught_up_ || now.caught_up);
  if (first) {
    before_ = last_ = now.losses;
    missed_before_ = missed_ = now.traffic.items_missing;
  }
  if (now.losses.dropped > last_.dropped || now.losses.lost_messages > last_.lost_messages ||
      now.traffic.items_missing > missed_) {
    if (!lost_at_ || seconds - *lost_at_ > kShown) {
      before_ = last_;
      missed_before_ = missed_;
      lost_since_ = seconds;
    }
    lost_at_ = seconds;
  }
  last_ = now.losses;
  missed_ = now.traffic.items_missing;
  if (std::exchange(revision_, now.revision) != now.revision)
    look_for_warnings(now.messages, !first, seconds);
  waiting_bytes_ = now.traffic.waiting_bytes;
  at_collector_ = now.traffic.items_behind > 0;
  if (waiting_bytes_ == 0 && !at_collector_) {
    behind_since_.reset();
  } else if (!behind_since_) {
    behind_since_ = seconds;
  }
}

void LiveNotices::look_for_warnings(std::span<const store::Message> messages, bool news, double seconds) {
  Warnings warnings;
  for (const store::Message& message : messages) {
    if (message.severity == ev::Severity::info) continue;
    const std::pair key{message.rank, message.text};
    const std::size_t count = ++warnings[key];
    const auto known = warnings_.find(key);
    if (!news || (known != warnings_.end() && count <= known->second)) continue;
    warning_ = message;
    warned_at_ = seconds;
  }
  warnings_ = std::move(warnings);
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
  if (warning_ && seconds - warned_at_ <= kShown)
    return Notice{
        warning_->rank == ev::kNoId ? std::string("The run") : "Rank " + std::to_string(warning_->rank),
        warning_->text, warning_->severity == ev::Severity::error, "messages"};
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
