// `watch`: a line per interval of a live run, what deserves a look as it happens, and the figures for
// Prometheus. For runs of days: memory is bounded whatever the length of the run.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/watch.h"
#include "app/cli/checks.h"
#include "app/cli/metrics_server.h"
#include "app/cli/process.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/collector/viewer.h"
#include "app/export/open_metrics.h"
#include "app/export/output_file.h"

namespace shardscope::cli {
namespace {

using Clock = std::chrono::steady_clock;
using collector::Viewer;
using instrumentation::Detail;

/// Rank steps that figures are made of: with more the oldest quarter goes, so that a month costs what a day
/// does.
constexpr std::size_t kMostRankSteps = std::size_t{1} << 16;
/// Findings look at all of these steps: not at each interval of a second.
constexpr std::chrono::seconds kFindingsEvery{30};

const std::vector<std::string> kDetails{"steps", "phases", "modules", "params", "kernels"};

Detail detail_of(const std::string& name) {
  return static_cast<Detail>(std::ranges::find(kDetails, name) - kDetails.begin());
}

struct WatchOptions {
  std::string endpoint, key;
  double interval_s = 10;
  bool json = false;
  std::string metrics, prometheus, command;
  std::vector<std::string> triggers;
  std::int64_t memory_limit = 0;
  std::string raise, otherwise = "steps";
  std::uint32_t raise_steps = 20;
};

/// Raises what the ranks emit for some steps after a trigger, then lowers it again.
class DetailSwitch {
 public:
  DetailSwitch(const WatchOptions& options, Viewer& viewer) : options_(&options), viewer_(&viewer) {}
  void follow(const analysis::WatchInterval& interval, bool triggered) {
    if (options_->raise.empty() || interval.step == instrumentation::kNoId) return;
    if (!set_) set(options_->otherwise);
    if (triggered) {
      if (until_ == 0) set(options_->raise);
      until_ = interval.step + options_->raise_steps;
    } else if (until_ != 0 && interval.step >= until_) {
      until_ = 0;
      set(options_->otherwise);
    }
  }

 private:
  void set(const std::string& name) {
    set_ = true;
    viewer_->send({.kind = collector::Command::Kind::set_detail, .rule = {}, .detail = detail_of(name)});
    say(stderr, "shardscope: detail {} is asked for\n", name);
  }
  const WatchOptions* options_;
  Viewer* viewer_;
  bool set_ = false;
  std::uint32_t until_ = 0;  ///< step; 0: not raised
};

/// The user's command, one at a time: a second trigger while it runs does not start another.
class TriggerCommand {
 public:
  explicit TriggerCommand(std::string command) : command_(std::move(command)) {}
  void run(const analysis::Trigger& trigger, const std::string& endpoint) {
    if (command_.empty()) return;
    if (child_ && child_->running()) {
      say(stderr, "shardscope: --on-trigger: still running for an earlier trigger, not started for {}\n",
          analysis::name_of(trigger.kind));
      return;
    }
    const auto id = [](std::uint32_t number) {
      return number == instrumentation::kNoId ? std::string() : std::to_string(number);
    };
    child_.emplace(std::vector<std::string>{"/bin/sh", "-c", command_}, Process::Output::inherit,
                   std::vector<std::pair<std::string, std::string>>{
                       {"SHARDSCOPE_TRIGGER", analysis::name_of(trigger.kind)},
                       {"SHARDSCOPE_TRIGGER_TEXT", instrumentation::plain_line(trigger.text)},
                       {"SHARDSCOPE_TRIGGER_STEP", id(trigger.step)},
                       {"SHARDSCOPE_TRIGGER_RANK", id(trigger.rank)},
                       {"SHARDSCOPE_ENDPOINT", endpoint}});
  }
  /// The run is over: a command that looks at its end may finish.
  void finish() {
    if (child_ && !interrupted()) child_->wait();
  }

 private:
  std::string command_;
  std::optional<Process> child_;
};

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%H:%M:%S}", fmt::localtime(now));
}

class Watch {
 public:
  explicit Watch(const WatchOptions& options)
      : options_(options),
        viewer_(options.endpoint, options.key),
        watcher_({.memory_limit_bytes = options.memory_limit}),
        detail_(options, viewer_),
        command_(options.command) {
    store_.bound({});
    digest_.keep_at_most(kMostRankSteps);
    if (!options.prometheus.empty()) {
      server_.emplace(options.prometheus);
      say(stderr, "shardscope: metrics at {}\n", server_->url());
    }
  }

  int run() {
    install_interrupt_handler();
    const auto interval =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.interval_s));
    Clock::time_point next = Clock::now() + interval, changed = Clock::now();
    while (!interrupted()) {
      if (viewer_.poll(store_, std::chrono::milliseconds(100))) {
        changed = Clock::now();
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      take();
      const Viewer::Link link = viewer_.link();
      note(link);
      if (link == Viewer::Link::ended) break;
      if (Clock::now() < next || link == Viewer::Link::connecting || link == Viewer::Link::catching_up)
        continue;
      look(Clock::now() - changed);
      next = std::max(next + interval, Clock::now());
    }
    if (interrupted()) return interrupt_code();
    while (!digest_.update(store_)) {
    }
    const bool failed = look(Clock::duration::zero());
    command_.finish();
    say(stderr, "shardscope: the run has ended\n");
    return failed ? 1 : 0;
  }

 private:
  void take() {
    // Another run, or the same with another time 0: what was taken does not hold any more.
    if (store_.origin_ns() != origin_ns_ || store_.event_count() < events_) {
      digest_ = {};
      digest_.keep_at_most(kMostRankSteps);
      origin_ns_ = store_.origin_ns();
    }
    events_ = store_.event_count();
    digest_.update(store_, std::chrono::milliseconds(50));
  }

  void note(Viewer::Link link) {
    if (link == link_) return;
    if (link_ == Viewer::Link::catching_up && link == Viewer::Link::live) joined_ns_ = store_.end_ns();
    if (link == Viewer::Link::lost) say(stderr, "shardscope: {}: connection lost\n", options_.endpoint);
    if (link_ == Viewer::Link::lost && link == Viewer::Link::live)
      say(stderr, "shardscope: {}: connected again\n", options_.endpoint);
    link_ = link;
  }

  /// Whether a rank failed.
  bool look(Clock::duration quiet) {
    const collector::ControlState control = viewer_.control();
    analysis::WatchInterval interval =
        watcher_.look(store_, digest_, quiet, control.paused || control.pausing);
    if (Clock::now() >= next_findings_) {
      watcher_.take_findings(analysis::find(store_, analysis::summarize(store_, digest_)), interval);
      next_findings_ = Clock::now() + kFindingsEvery;
    }
    // Commands are not started for what was over before this program came: `summary` and `findings` have it.
    std::erase_if(interval.triggers, [&](const analysis::Trigger& trigger) {
      return trigger.step != instrumentation::kNoId && trigger.at_ns < joined_ns_;
    });
    if (!options_.triggers.empty()) {
      std::erase_if(interval.triggers, [&](const analysis::Trigger& trigger) {
        return std::ranges::find(options_.triggers, analysis::name_of(trigger.kind)) ==
               options_.triggers.end();
      });
    }
    publish(interval);
    for (const analysis::Trigger& trigger : interval.triggers) {
      failed_ |= trigger.kind == analysis::TriggerKind::rank_failed;
      command_.run(trigger, options_.endpoint);
    }
    detail_.follow(interval, !interval.triggers.empty());
    return failed_;
  }

  void publish(const analysis::WatchInterval& interval) {
    if (options_.json) {
      say_text(stdout, instrumentation::plain_json(analysis::to_json(interval)) + "\n");
    } else {
      say("{}  {}\n", now_text(), analysis::watch_line(interval));
      for (const analysis::Trigger& trigger : interval.triggers)
        say("{:>8}  ! {}: {}\n", "", analysis::name_of(trigger.kind), trigger.text);
    }
    std::fflush(stdout);
    if (options_.metrics.empty() && !server_) return;
    metrics_.take(interval);
    std::string text = metrics_.text(store_, interval);
    if (!options_.metrics.empty()) {
      exporter::OutputFile file(options_.metrics);
      file.write([&](std::ostream& out) { out << text; });
      file.commit();
    }
    if (server_) server_->set(std::move(text));
  }

  const WatchOptions& options_;
  store::Store store_;
  Viewer viewer_;
  analysis::Digest digest_;
  analysis::Watcher watcher_;
  exporter::OpenMetrics metrics_;
  std::optional<MetricsServer> server_;
  DetailSwitch detail_;
  TriggerCommand command_;
  Viewer::Link link_ = Viewer::Link::connecting;
  std::int64_t origin_ns_ = 0;
  std::uint64_t events_ = 0;
  std::int64_t joined_ns_ = 0;  ///< on the run's clock: how far it was when this program had caught up
  bool failed_ = false;
  Clock::time_point next_findings_{};
};

}  // namespace

void add_watch(CLI::App& app, Action& action) {
  auto options = std::make_shared<WatchOptions>();
  CLI::App* verb = app.add_subcommand(
      "watch", "A line per interval of a live run, and what deserves a look: slow steps, losses, hangs, ...");
  verb->add_option("endpoint", options->endpoint, "Endpoint of the collector (tcp://host:port)")
      ->check(kEndpoint)
      ->required();
  verb->add_option("--key", options->key,
                   "Key file (docs/security.md; default: the one SHARDSCOPE_KEY names, else found by the "
                   "endpoint; none: without)");
  verb->add_option("--interval", options->interval_s, "Seconds between two lines")
      ->check(kAboveZero)
      ->capture_default_str();
  verb->add_flag("--json", options->json, "A line of JSON per interval, for programs");
  verb->add_option("--metrics", options->metrics,
                   "Write the figures to this file in OpenMetrics' format, anew at each interval");
  verb->add_option("--prometheus", options->prometheus,
                   "Serve them at http://HOST:PORT/metrics (127.0.0.1:9464; readable by whoever reaches it)");
  std::vector<std::string> names;
  for (int kind = 0; kind <= static_cast<int>(analysis::TriggerKind::finding); ++kind)
    names.emplace_back(analysis::name_of(static_cast<analysis::TriggerKind>(kind)));
  verb->add_option("--trigger", options->triggers, "Only these triggers (default: all)")
      ->check(CLI::IsMember(names))
      ->delimiter(',');
  verb->add_option("--on-trigger", options->command,
                   "Shell command to start at a trigger; SHARDSCOPE_TRIGGER, _TRIGGER_TEXT, _TRIGGER_STEP, "
                   "_TRIGGER_RANK and _ENDPOINT are set");
  verb->add_option("--memory-limit", options->memory_limit,
                   "Bytes of a rank's device: a trigger where a rank held 95 % of it")
      ->check(kAboveZero);
  CLI::Option* raise =
      verb->add_option("--raise-detail", options->raise, "At a trigger the ranks emit this much ...")
          ->check(CLI::IsMember(kDetails));
  verb->add_option("--raise-steps", options->raise_steps, "... for so many steps ...")
      ->check(kAboveZero)
      ->needs(raise)
      ->capture_default_str();
  verb->add_option("--detail-otherwise", options->otherwise, "... and before and after that this much")
      ->check(CLI::IsMember(kDetails))
      ->needs(raise)
      ->capture_default_str();
  verb->callback([options, &action] { action = [options] { return Watch(*options).run(); }; });
}

}  // namespace shardscope::cli
