#include "app/cli/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/cli/checks.h"
#include "app/cli/keep_answer.h"
#include "app/cli/process.h"
#include "app/cli/say.h"
#include "instrumentation/clock.h"

namespace shardscope::cli {
namespace {

constexpr std::chrono::seconds kEvery{1};

bool is_paused(const store::Store& store) {
  return std::ranges::any_of(store.ranks(), [](const store::RankRow& rank) { return rank.gate.holding; });
}

/// Why requests have no effect; empty: they have.
std::string off(const collector::CollectorOptions& options) {
  if (options.record_path.empty()) return "nothing is recorded";
  if (!options.retention.limited()) {
    const std::size_t files = options.rotation.max_files;
    return fmt::format("everything{}{}", kKeptAlready,
                       files == 0 ? "" : fmt::format(", in the newest {} files (--max-files)", files));
  }
  return options.retention.moments == 0 ? "no moments are kept (--moments 0)" : "";
}

}  // namespace

FlightRecorder::FlightRecorder(collector::Collector& collector, const collector::CollectorOptions& options,
                               const RetentionOptions& kept)
    : collector_(collector),
      clock_(options.clock),
      off_(off(options)),
      around_ns_(options.retention.around_ns),
      sized_(options.retention.max_bytes > 0),
      triggers_(kept.triggers),
      watcher_({.memory_limit_bytes = kept.memory_limit}),
      detail_(kept.detail, [this](const std::string& name) {
        say(stderr, "shardscope: requesting detail {}\n", name);
        collector_.set_detail(detail_of(name));
      }) {}

std::int64_t FlightRecorder::now_ns() const { return clock_.at(instrumentation::monotonic_now_ns()); }

void FlightRecorder::found(const store::Store& store, const analysis::Trigger& trigger) {
  const bool wanted =
      triggers_.empty() || std::ranges::find(triggers_, name_of(trigger.kind)) != triggers_.end();
  if (!wanted) return;
  found_.push_back({.at_ns = std::min(trigger.at_ns + store.origin_ns(), now_ns()),
                    .kind = name_of(trigger.kind),
                    .step = trigger.step,
                    .rank = trigger.rank,
                    .text = trigger.text});
  if (trigger.end_ns > trigger.at_ns)
    found_.back().lasts_until_ns = std::min(trigger.end_ns + store.origin_ns(), now_ns());
}

bool FlightRecorder::is_new(const store::Moment& moment) {
  const std::int64_t until_ns = std::max(moment.at_ns, moment.lasts_until_ns);
  const auto [kept, first] = kept_until_.try_emplace(moment.kind, until_ns + around_ns_);
  if (!first && until_ns <= kept->second) return false;
  kept->second = until_ns + around_ns_;
  return true;
}

void FlightRecorder::look_at(const store::Store& store, bool asked, Clock::time_point now) {
  if (store.event_count() != events_) changed_ = now;
  events_ = store.event_count();
  const analysis::WatchInterval interval = watcher_.look_at_totals(store, now - changed_, is_paused(store));
  step_ = interval.step;
  for (const analysis::Trigger& trigger : interval.triggers) found(store, trigger);
  if (!asked) return;
  if (events_ == 0) {
    say(stderr, "shardscope: SIGUSR2: no event has arrived yet, there is nothing to keep\n");
    return;
  }
  found_.push_back({.at_ns = std::min(store.origin_ns() + store.end_ns(), now_ns()),
                    .kind = store::kRequested,
                    .step = interval.step,
                    .text = "requested with SIGUSR2"});
}

std::string FlightRecorder::keep(store::Moment moment, const std::string& stopped) {
  if (!stopped.empty()) return fmt::format("{} ({}) is not kept: {}", moment.kind, moment.text, stopped);
  std::string text = fmt::format("{}the events still held around {}{}: {}", kKeeping, moment.kind,
                                 sized_ ? ", as far as --max-size leaves room" : "", moment.text);
  collector_.keep(std::move(moment));
  return text;
}

void FlightRecorder::answer(std::vector<store::Moment> asked_for, const std::string& stopped) {
  for (store::Moment& moment : asked_for) {
    const std::string who = moment.kind + " (" + moment.text + "): ";
    const std::string outcome = !off_.empty()     ? who + off_
                                : events_ == 0    ? who + "no event has arrived yet, there is nothing to keep"
                                : !is_new(moment) ? fmt::format("{}this moment{}", who, kKeptAlready)
                                                  : keep(std::move(moment), stopped);
    say(stderr, "shardscope: {}\n", outcome);
    collector_.answer(outcome);
  }
}

void FlightRecorder::look() {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kEvery;
  if (const std::string warning = collector_.take_recording_warning(); !warning.empty())
    say(stderr, "shardscope: {}\n", warning);
  const bool asked = take_request();
  std::vector<store::Moment> asked_for = collector_.take_asked_for();
  if (!off_.empty()) {
    answer(std::move(asked_for), {});
    if (asked) say(stderr, "shardscope: SIGUSR2: {}\n", off_);
    return;
  }
  collector_.read([&](const store::Store& store) { look_at(store, asked, now); });
  // Requests of viewers are triggers too, among them findings.
  detail_.follow(step_, !found_.empty() || !asked_for.empty());
  if (found_.empty() && asked_for.empty()) return;
  const std::string stopped = collector_.status().recording_error;
  answer(std::move(asked_for), stopped);
  for (store::Moment& moment : std::exchange(found_, {})) {
    if (is_new(moment)) {
      collector_.ask_nodes_to_keep(moment);
      say(stderr, "shardscope: {}\n", keep(std::move(moment), stopped));
    } else if (moment.kind == store::kRequested) {
      say(stderr, "shardscope: SIGUSR2: an earlier request already keeps the events around this moment\n");
    }
  }
}

}  // namespace shardscope::cli
