#include "app/cli/live_look.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "app/analysis/hang/hang.h"
#include "app/cli/verb.h"
#include "app/collector/local_runs.h"

namespace shardscope::cli {
namespace {

using LookClock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Link = collector::Viewer::Link;

[[noreturn]] void no_answer(const std::string& endpoint, const collector::Viewer& viewer,
                            const store::Store& store, double wait_s) {
  throw UserError(no_answer_text(endpoint, viewer.link(), store.event_count(), store.ranks().size(), wait_s));
}

}  // namespace

bool is_endpoint(const std::string& text) { return text.find("://") != std::string::npos; }

std::string no_answer_text(const std::string& endpoint, Link link, std::uint64_t events, std::size_t ranks,
                           double wait_s) {
  if (link != Link::connecting || events > 0) {
    return fmt::format(
        "{}: connected, but still behind the run after {:.4g} s: {} events of {} ranks are read; give it "
        "longer, "
        "or record the run and ask the recording",
        endpoint, wait_s, events, ranks);
  }
  const std::string others = collector::text_of(collector::local_runs(), endpoint);
  return fmt::format(
      "{}: no collector answered within {:.4g} s; is a run, `record` or the dashboard listening there?{}{}",
      endpoint, wait_s, others.empty() ? "" : " (", others.empty() ? "" : others + ")");
}

LiveLook watch_until_quiet(const std::string& endpoint, collector::Viewer& viewer, store::Store& store,
                           std::optional<double> quiet_s, std::optional<double> wait_s) {
  const LookClock::time_point began = LookClock::now();
  LookClock::time_point changed = began;
  std::uint64_t events = 0;
  double enough_s = quiet_s.value_or(0);
  for (;;) {
    viewer.poll(store, std::chrono::milliseconds(50));
    const LookClock::time_point now = LookClock::now();
    if (store.event_count() != events) {
      events = store.event_count();
      changed = now;
      if (!quiet_s) enough_s = static_cast<double>(analysis::usual_wait_ns(store)) * 1e-9;
    }
    LiveLook look{.quiet_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now - changed).count(),
                  .quiet = Seconds(now - changed).count() > enough_s,
                  .link = viewer.link()};
    const bool over = look.link == Link::ended || look.link == Link::lost;
    if (over || (look.link == Link::live && look.quiet)) return look;
    // Without a limit of the user: while nothing arrives, long enough to tell a hang from a long step.
    constexpr double kWait_s = 20, kArriving_s = 1.5;
    const bool arrives = Seconds(now - changed).count() < kArriving_s || look.link != Link::live;
    const double most_s = wait_s.value_or(arrives ? kWait_s : kWait_s + enough_s);
    if (Seconds(now - began).count() > most_s) {
      if (look.link == Link::live && events > 0) return look;
      no_answer(endpoint, viewer, store, most_s);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

bool catch_up(const std::string& endpoint, collector::Viewer& viewer, store::Store& store, double wait_s) {
  const LookClock::time_point began = LookClock::now();
  for (;;) {
    viewer.poll(store, std::chrono::milliseconds(50));
    const Link link = viewer.link();
    if (link == Link::live || link == Link::ended) return true;
    if (Seconds(LookClock::now() - began).count() > wait_s) {
      if (store.event_count() > 0) return false;
      no_answer(endpoint, viewer, store, wait_s);
    }
  }
}

}  // namespace shardscope::cli
