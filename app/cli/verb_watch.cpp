// `watch`: a line per interval of a live run, triggers as they occur, and figures for Prometheus. For
// runs of days: memory is bounded for any length of the run.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/watch.h"
#include "app/cli/checks.h"
#include "app/cli/detail_switch.h"
#include "app/cli/live_look.h"
#include "app/cli/metrics_server.h"
#include "app/cli/process.h"
#include "app/cli/retention_options.h"
#include "app/cli/say.h"
#include "app/cli/trigger_command.h"
#include "app/cli/verb.h"
#include "app/cli/watch_play.h"
#include "app/collector/local_runs.h"
#include "app/collector/viewer.h"
#include "app/export/open_metrics.h"
#include "app/export/output_file.h"

namespace shardscope::cli {
namespace {

using Clock = std::chrono::steady_clock;
using collector::Viewer;

/// Bound on rank steps in figures: beyond it the oldest quarter is evicted, so that a month costs as much as
/// a day.
constexpr std::size_t kMostRankSteps = std::size_t{1} << 16;
/// Findings read all of these steps: too slow for each interval of a second.
constexpr std::chrono::seconds kFindingsEvery{30};
/// Until it is reported that no collector answers.
constexpr std::chrono::seconds kSilence{10};
/// Triggers are looked for this often, or each interval if that is shorter: a command at a hang, and the
/// detail after a trigger, must not wait for the next line.
constexpr std::chrono::seconds kLookEvery{1};
/// Metrics of steps are those of this time, or of an interval if that is shorter.
constexpr std::chrono::seconds kMetricsOver{10};

struct WatchOptions {
  std::string endpoint, key;
  double interval_s = 10;
  bool json = false;
  std::string metrics, prometheus, command;
  std::vector<std::string> triggers;
  std::int64_t memory_limit = 0;
  DetailOptions detail;
  bool keep = false;
};

Clock::duration interval_of(const WatchOptions& options) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.interval_s));
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%H:%M:%S}", fmt::localtime(now));
}

class Watch {
 public:
  explicit Watch(const WatchOptions& options)
      : options_(options),
        viewer_(options.endpoint, options.key),
        watcher_(rules()),
        detail_(detail_switch()),
        command_(options.command, options.endpoint,
                 [](const std::string& problem) { say(stderr, "shardscope: {}\n", problem); }) {
    store_.bound({});
    digest_.keep_at_most(kMostRankSteps);
    if (!options.prometheus.empty()) {
      server_.emplace(options.prometheus);
      say(stderr, "shardscope: metrics at {}\n", server_->url());
    }
  }

  int run() {
    install_interrupt_handler();
    const Clock::duration interval = interval_of(options_);
    const Clock::duration every = std::min<Clock::duration>(interval, kLookEvery);
    Clock::time_point next = Clock::now() + interval, next_look = Clock::now() + every;
    Clock::time_point changed = Clock::now(), note_catching_up = next;
    next_metrics_ = Clock::now() + std::min<Clock::duration>(interval, kMetricsOver);
    while (!interrupted()) {
      if (viewer_.poll(store_, std::chrono::milliseconds(100))) {
        changed = Clock::now();
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      take();
      command_.next();
      const Viewer::Link link = viewer_.link();
      note(link);
      if (link == Viewer::Link::ended) break;
      // With thousands of ranks, reading the run so far takes longer than an interval.
      if (link == Viewer::Link::catching_up && Clock::now() >= note_catching_up) {
        say(stderr, "shardscope: reading the run so far: {} events of {} ranks\n",
            analysis::count_text(static_cast<double>(store_.event_count())), store_.ranks().size());
        note_catching_up = Clock::now() + interval;
      }
      const Clock::time_point now = Clock::now();
      if (now < std::min(next, next_look) || link == Viewer::Link::connecting ||
          link == Viewer::Link::catching_up)
        continue;
      // Without a connection the state of the run is unknown: this is no hang.
      look(link == Viewer::Link::lost ? Clock::duration::zero() : now - changed);
      next_look = now + every;
      if (now < next) continue;
      print();
      next += interval;
      if (next < Clock::now()) next = Clock::now() + interval;
    }
    // If the run was faster than the digest, the remaining steps may take minutes.
    while (!interrupted() && !digest_.update(store_, std::chrono::milliseconds(50))) {
    }
    if (interrupted()) return interrupt_code();
    next_findings_ = {};
    next_metrics_ = {};
    look(Clock::duration::zero());
    print();
    // The queued commands, unless interrupted: of each the time is limited.
    while (!interrupted() && command_.busy()) {
      command_.next();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    say(stderr, "shardscope: the run has ended\n");
    return failed_ ? 1 : 0;
  }

 private:
  [[nodiscard]] analysis::WatchRules rules() const {
    analysis::WatchRules rules;
    rules.memory_limit_bytes = options_.memory_limit;
    return rules;
  }

  [[nodiscard]] DetailSwitch detail_switch() {
    return {
        options_.detail, [this](const std::string& name) {
          viewer_.send({.kind = collector::Command::Kind::set_detail, .rule = {}, .detail = detail_of(name)});
          say(stderr, "shardscope: requesting detail {}\n", name);
        }};
  }

  void take() {
    // A collector restarted at this endpoint may have another run, whose steps begin at 0.
    if (store_.has_tables() && store_.tables().run_id != run_id_) {
      if (!run_id_.empty()) {
        watcher_ = analysis::Watcher(rules());
        metrics_.forget_steps();
        detail_ = detail_switch();
        joined_ns_ = 0;
      }
      run_id_ = store_.tables().run_id;
    }
    // Time 0 has moved, or the store was cleared: the digest's times no longer apply.
    if (store_.origin_ns() != origin_ns_ || store_.event_count() < events_) {
      digest_ = {};
      digest_.keep_at_most(kMostRankSteps);
      origin_ns_ = store_.origin_ns();
    }
    events_ = store_.event_count();
    digest_.update(store_, std::chrono::milliseconds(50));
  }

  /// Prints messages about the connection and the run's control.
  void note(Viewer::Link link) {
    const std::string note = viewer_.control().note;  // a missing key, a refused command, who paused the run
    if (note != control_note_ && !note.empty()) say(stderr, "shardscope: {}\n", note);
    control_note_ = note;
    // Without a key file for the endpoint, nothing of this user listens there: known at once.
    if (link == Viewer::Link::connecting && !waiting_said_ &&
        (!note.empty() || Clock::now() - began_ > kSilence)) {
      waiting_said_ = true;
      const std::string others = collector::text_of(collector::local_runs(), options_.endpoint);
      say(stderr, "shardscope: {}: no collector answers yet; waiting until one does (Ctrl-C ends it){}{}\n",
          options_.endpoint, others.empty() ? "" : "; ", others);
    }
    if (link == Viewer::Link::live && !joined_) {
      joined_ = true;
      joined_ns_ = store_.end_ns();
    }
    if (link == Viewer::Link::lost && !lost_)
      say(stderr, "shardscope: {}: connection lost\n", options_.endpoint);
    if (link == Viewer::Link::live && lost_)
      say(stderr, "shardscope: {}: connected again\n", options_.endpoint);
    if (link == Viewer::Link::lost || link == Viewer::Link::live) lost_ = link == Viewer::Link::lost;
  }

  void look(Clock::duration quiet) {
    const collector::ControlState control = viewer_.control();
    analysis::WatchInterval interval =
        watcher_.look(store_, digest_, quiet, control.paused || control.pausing);
    if (Clock::now() >= next_findings_) {
      // From the digest's steps so far: a new digest would read the whole run again, for minutes without
      // any output.
      watcher_.take_findings(analysis::find(store_, analysis::summarize(store_, digest_), digest_), interval);
      next_findings_ = Clock::now() + kFindingsEvery;
    }
    for (const analysis::Trigger& trigger : interval.triggers)
      failed_ |= trigger.kind == analysis::TriggerKind::rank_failed;
    // Steps that ended before this program connected start no command; conditions that still hold do.
    std::erase_if(interval.triggers, [&](const analysis::Trigger& trigger) {
      return trigger.step != instrumentation::kNoId && trigger.at_ns < joined_ns_;
    });
    keep_named(interval.triggers, options_.triggers);
    publish(interval);
    for (const analysis::Trigger& trigger : interval.triggers) {
      command_.add(trigger);
      if (options_.keep) keep(trigger);
    }
    command_.next();
    detail_.follow(interval.step, !interval.triggers.empty());
    join(line_, std::move(interval));
  }

  static void join(std::optional<analysis::WatchInterval>& sum, analysis::WatchInterval next) {
    if (sum) {
      sum->add(std::move(next));
    } else {
      sum = std::move(next);
    }
  }

  /// What was seen since the last line.
  void print() {
    if (line_) print_interval(*line_, options_.json, now_text());
    line_.reset();
  }

  /// A finding is about the run so far: it is visible now too, while its begin may not be kept
  /// any more.
  void keep(const analysis::Trigger& trigger) {
    const std::int64_t recent_ns =
        store_.end_ns() - 2 * std::chrono::duration_cast<std::chrono::nanoseconds>(kFindingsEvery).count();
    const std::int64_t at_ns = trigger.kind == analysis::TriggerKind::finding && trigger.at_ns < recent_ns
                                   ? store_.end_ns()
                                   : trigger.at_ns;
    viewer_.keep(analysis::name_of(trigger.kind), at_ns + store_.origin_ns(), trigger.text);
  }

  void publish(const analysis::WatchInterval& interval) {
    if (options_.metrics.empty() && !server_) return;
    metrics_.count(interval);
    join(shown_next_, interval);
    if (Clock::now() >= next_metrics_ || !metrics_.any_step()) {
      metrics_.show(*shown_next_);
      shown_next_.reset();
      next_metrics_ = Clock::now() + std::min<Clock::duration>(interval_of(options_), kMetricsOver);
    }
    std::string text = metrics_.text(store_, interval);
    if (!options_.metrics.empty()) write_metrics(text);
    if (server_) server_->set(std::move(text));
  }

  /// A temporarily full disk does not end a watch of days.
  void write_metrics(const std::string& text) {
    try {
      exporter::OutputFile file(options_.metrics);
      file.write([&](std::ostream& out) { out << text; });
      file.commit();
      metrics_problem_.clear();
    } catch (const std::runtime_error& error) {
      if (metrics_problem_ != error.what()) say(stderr, "shardscope: --metrics: {}\n", error.what());
      metrics_problem_ = error.what();
    }
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
  std::int64_t origin_ns_ = 0;
  std::uint64_t events_ = 0;
  std::string control_note_, run_id_, metrics_problem_;
  bool joined_ = false, lost_ = false, waiting_said_ = false, failed_ = false;
  std::int64_t joined_ns_ = 0;  ///< on the run's clock: its latest event when this program had caught up
  const Clock::time_point began_ = Clock::now();
  Clock::time_point next_findings_{}, next_metrics_{};
  std::optional<analysis::WatchInterval> line_, shown_next_;  ///< since the last line; since metrics_.show()
};

}  // namespace

void add_watch(CLI::App& app, Action& action) {
  auto options = std::make_shared<WatchOptions>();
  CLI::App* verb = app.add_subcommand(
      "watch", "One line per interval of a live run, and triggers: slow steps, loss jumps, hangs, ...");
  verb->add_option("run", options->endpoint,
                   "Endpoint of the collector (tcp://host:port), or a finished recording (*.zscope)")
      ->check(kEndpointOrFile)
      ->required();
  verb->add_option("--key", options->key, kKeyText);
  verb->add_option("--interval", options->interval_s, "Seconds between two lines, from 0.001 to a day")
      ->check(kAboveZero)
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "A line of JSON per interval, for programs");
  verb->add_option("--metrics", options->metrics,
                   "Write the figures to this file in OpenMetrics' format, anew each second");
  verb->add_option(
      "--prometheus", options->prometheus,
      "Serve them at http://HOST:PORT/metrics (127.0.0.1:9464; readable by anyone who reaches it)");
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < analysis::kTriggerKinds; ++kind)
    names.emplace_back(analysis::name_of(static_cast<analysis::TriggerKind>(kind)));
  verb->add_option("--trigger", options->triggers, "Only these triggers (default: all)")
      ->check(CLI::IsMember(names))
      ->delimiter(',');
  verb->add_option("--on-trigger", options->command,
                   "Shell command to start at a trigger; SHARDSCOPE_TRIGGER, _TRIGGER_TEXT, _TRIGGER_STEP, "
                   "_TRIGGER_RANK and _ENDPOINT are set");
  verb->add_flag("--keep", options->keep,
                 "Ask the recorder to keep the events around each trigger, findings too (with a key that may "
                 "control)");
  add_size(*verb, "--memory-limit", options->memory_limit,
           "Memory of a rank's device, e.g. 24GiB: a trigger where a rank held 95 % of it");
  add_detail_switch(*verb, options->detail);
  // Options for live runs only: a recording has no ranks to command and no present.
  std::vector<CLI::Option*> of_live_runs;
  for (const char* name : {"--key", "--metrics", "--prometheus", "--on-trigger", "--keep", "--raise-detail"})
    of_live_runs.push_back(verb->get_option(name));
  verb->callback([options, of_live_runs, &action] {
    action = [options, of_live_runs] {
      check_memory_limit("--trigger", options->triggers, options->memory_limit);
      if (is_endpoint(options->endpoint)) return Watch(*options).run();
      for (const CLI::Option* option : of_live_runs) {
        if (option->count() != 0)
          throw UserError(fmt::format("{} needs a live run, and {} is a recording", option->get_name(),
                                      options->endpoint),
                          2);
      }
      return play(
          {options->endpoint, options->interval_s, options->json, options->triggers, options->memory_limit});
    };
  });
}

}  // namespace shardscope::cli
