#include "app/cli/flight_recorder.h"

#include <algorithm>
#include <utility>

#include "app/cli/process.h"
#include "app/cli/say.h"

namespace shardscope::cli {
namespace {

constexpr std::chrono::seconds kEvery{1};

bool is_paused(const store::Store& store) {
  return std::ranges::any_of(store.ranks(), [](const store::RankRow& rank) { return rank.gate.holding; });
}

}  // namespace

FlightRecorder::FlightRecorder(collector::Collector& collector, const store::Retention& retention,
                               std::vector<std::string> triggers)
    : collector_(collector),
      on_(retention.limited() && retention.moments > 0),
      around_ns_(retention.around_ns),
      triggers_(std::move(triggers)) {
  if (on_) install_request_handler();
}

FlightRecorder::~FlightRecorder() {
  if (on_) remove_request_handler();
}

void FlightRecorder::keep(const store::Store& store, const analysis::Trigger& trigger) {
  found_.push_back({.at_ns = trigger.at_ns + store.origin_ns(),
                    .kind = name_of(trigger.kind),
                    .step = trigger.step,
                    .rank = trigger.rank,
                    .text = trigger.text});
}

bool FlightRecorder::is_new(const store::Moment& moment) {
  const auto [last, first] = last_.try_emplace(moment.kind, moment.at_ns);
  if (!first && moment.at_ns - last->second <= around_ns_) return false;
  last->second = moment.at_ns;
  return true;
}

void FlightRecorder::look() {
  const Clock::time_point now = Clock::now();
  if (!on_ || now < next_) return;
  next_ = now + kEvery;
  const bool asked = take_request();
  collector_.read([&](const store::Store& store) {
    if (store.event_count() != events_) changed_ = now;
    events_ = store.event_count();
    const analysis::WatchInterval interval = watcher_.look_at_totals(store, now - changed_, is_paused(store));
    for (const analysis::Trigger& trigger : interval.triggers) {
      const bool wanted =
          triggers_.empty() || std::ranges::find(triggers_, name_of(trigger.kind)) != triggers_.end();
      if (wanted) keep(store, trigger);
    }
    if (asked) {
      found_.push_back({.at_ns = store.origin_ns() + store.end_ns(),
                        .kind = "request",
                        .step = interval.step,
                        .text = "requested with SIGUSR2"});
    }
  });
  for (store::Moment& moment : std::exchange(found_, {})) {
    if (!is_new(moment)) continue;
    say(stderr, "shardscope: keeping what lies around {}: {}\n", moment.kind, moment.text);
    collector_.keep(std::move(moment));
  }
}

}  // namespace shardscope::cli
