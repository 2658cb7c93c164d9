#include "app/cli/watch_play.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/cli/process.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/store/replay.h"
#include "app/store/store.h"
#include "instrumentation/plain_text.h"

namespace shardscope::cli {
namespace {

/// Run time of the first findings, later ones each after twice as long: findings read all steps so far.
constexpr std::int64_t kFirstFindings_ns = 30'000'000'000;
/// Of run time, as a live watch looks: a hang between two lines is seen, too.
constexpr std::int64_t kLookEvery_ns = 1'000'000'000;

std::string run_time_text(std::int64_t ns) {
  const std::int64_t seconds = ns / 1'000'000'000;
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace

void print_interval(const analysis::WatchInterval& interval, bool json, const std::string& time) {
  if (json) {
    say_text(stdout, instrumentation::plain_json(analysis::to_json(interval)) + "\n");
  } else {
    say("{}  {}\n", time, analysis::watch_line(interval));
    for (const analysis::Trigger& trigger : interval.triggers)
      say("{:>8}  ! {}: {}\n", "", analysis::name_of(trigger.kind), trigger.text);
  }
  std::fflush(stdout);
}

void keep_named(std::vector<analysis::Trigger>& triggers, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::erase_if(triggers, [&](const analysis::Trigger& trigger) {
    return std::ranges::find(names, analysis::name_of(trigger.kind)) == names.end();
  });
}

int play(const PlayOptions& options) {
  install_interrupt_handler();
  store::Replay replay(options.file);
  if (replay.keeps_a_part()) {
    throw UserError(fmt::format(
        "{}: keeps a part of its run, so its intervals cannot be played; `shardscope summary {}` has the "
        "figures of all of it, `shardscope findings {}` what was unusual",
        options.file, options.file, options.file));
  }
  for (const std::string& problem : replay.info().problems)
    say(stderr, "shardscope: {}: {}\n", options.file, problem);
  store::Store store;
  analysis::Digest digest;
  analysis::Watcher watcher({.memory_limit_bytes = options.memory_limit});
  std::int64_t origin_ns = 0, next_findings_ns = kFirstFindings_ns;
  bool failed = false;
  const auto each_ns = static_cast<std::int64_t>(options.interval_s * 1e9);
  const std::int64_t look_ns = std::min(each_ns, kLookEvery_ns);
  const std::int64_t end_ns = replay.end_ns();
  std::int64_t at_ns = 0, line_ns = std::min(each_ns, end_ns);
  std::optional<analysis::WatchInterval> line;
  // At least once, even without events: a rank may have failed before its first.
  do {
    at_ns = at_ns > line_ns - look_ns ? line_ns : at_ns + look_ns;
    replay.advance(store, at_ns);
    if (store.origin_ns() != origin_ns) {
      digest = {};
      origin_ns = store.origin_ns();
    }
    digest.update(store);
    const std::int64_t quiet_ns = std::max<std::int64_t>(at_ns - store.end_ns(), 0);
    const bool paused = quiet_ns > 0 && replay.paused();
    analysis::WatchInterval interval =
        watcher.look(store, digest, std::chrono::nanoseconds(quiet_ns), paused);
    if (at_ns >= next_findings_ns || at_ns == end_ns) {
      watcher.take_findings(analysis::find(store, analysis::summarize(store, digest), digest), interval);
      next_findings_ns = 2 * at_ns;
    }
    for (const analysis::Trigger& trigger : interval.triggers)
      failed |= trigger.kind == analysis::TriggerKind::rank_failed;
    keep_named(interval.triggers, options.triggers);
    if (line) {
      line->add(std::move(interval));
    } else {
      line = std::move(interval);
    }
    if (at_ns < line_ns) continue;
    print_interval(*line, options.json, run_time_text(at_ns));
    line.reset();
    line_ns = line_ns > end_ns - each_ns ? end_ns : line_ns + each_ns;
  } while (at_ns < end_ns && !interrupted());
  if (interrupted()) return interrupt_code();
  return failed ? 1 : 0;
}

}  // namespace shardscope::cli
