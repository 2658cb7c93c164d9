// `record`: a collector on its own, for ranks started by other means (Slurm, mpirun, another machine).
// `collect`: one for the ranks of a node, which passes their events on.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "app/cli/checks.h"
#include "app/cli/detach.h"
#include "app/cli/flight_recorder.h"
#include "app/cli/launch.h"
#include "app/cli/made_runs.h"
#include "app/cli/process.h"
#include "app/cli/progress.h"
#include "app/cli/retention_options.h"
#include "app/cli/say.h"
#include "app/cli/socket_files.h"
#include "app/cli/summary_text.h"
#include "app/cli/verb.h"
#include "app/collector/collector.h"
#include "app/store/losses.h"

namespace shardscope::cli {

namespace {

std::string watch_command(const collector::CollectorOptions& options, const std::string& endpoint) {
  return options.keys.empty()
             ? fmt::format("shardscope view {}", endpoint)
             : fmt::format("shardscope view --key {}/control.key {}", options.keys, endpoint);
}

/// Collects until every rank has ended or the user interrupts it.
int collect(const collector::CollectorOptions& options, const RetentionOptions& kept,
            const std::string& doing, const UnderWay& under_way = {}) {
  install_interrupt_handler();
  install_request_handler();
  SocketFiles sockets;
  collector::Collector collector(options);
  sockets.of(collector.publish_endpoint());
  if (under_way) under_way(watch_command(options, collector.publish_endpoint()));
  say(stderr, "shardscope: listening on {}, {}; Ctrl-C ends it\n", collector.publish_endpoint(), doing);
  warn_if_insecure(options, collector.publish_endpoint());
  Progress progress(0, "collecting");
  FlightRecorder moments(collector, options, kept);
  while (!interrupted() && !collector.status().finished) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    collector.read([&](const store::Store& store) { progress.update(store); });
    moments.look();
  }
  progress.finish();
  collector.stop();
  const collector::CollectorStatus status = collector.status();
  std::size_t unended = 0;
  collector.read([&](const store::Store& store) {
    for (const store::RankRow& rank : store.ranks()) unended += rank.finished ? 0 : 1;
    say(stderr, "shardscope: {} events of {} ranks, {}", status.events, store.ranks().size(),
        store::text_of(store::losses_of(store)));
  });
  say(stderr, "; {} shed here\n", status.shed);
  if (status.shed_upstream != 0) {
    say(stderr, "shardscope: {}\n", shed_text(status.shed_upstream, options.upstream));
  }
  if (status.rejected + status.refused != 0) {
    std::string reasons;
    for (const auto& [reason, count] : status.rejected_by)
      reasons += fmt::format(", {} for {}", count, reason);
    say(stderr, "shardscope: {} messages ignored{}; {} connections refused\n", status.rejected, reasons,
        status.refused);
  }
  if (status.stalled + status.flooding != 0) {
    fmt::print(stderr,
               "shardscope: cut off: viewers that were gone or did not take what they had requested: {}; "
               "connections "
               "that sent more than is kept of messages that are not whole: {}\n",
               status.stalled, status.flooding);
  }
  if (status.stalled_s > 0) {
    fmt::print(stderr,
               "shardscope: the collector stalled for {:.1f} s in all (stopped, or kept from running)\n",
               status.stalled_s);
  }
  if (!status.recording_error.empty()) throw UserError(status.recording_error);
  // A node's collector is finished when the one above has received everything.
  if (!status.finished && unended != 0) {
    say(stderr,
        "shardscope: interrupted ({}) before {} of the connected ranks had reported that {} ended: later "
        "events are not recorded\n",
        interrupt_name(), unended, unended == 1 ? "it" : "they");
    return interrupt_code();
  }
  return 0;
}

struct Options {
  collector::CollectorOptions collector;
  RetentionOptions kept;
  bool overwrite = false;
  DetachOptions background;

  int collect(const std::string& doing) const {
    check(kept);
    collector::CollectorOptions all = collector;
    all.retention = kept.limits;
    all.rotation = kept.rotation;
    if (!background.detach) return cli::collect(all, kept, doing);
    return detached(background, collector.record_path,
                    [&](const UnderWay& under_way) { return cli::collect(all, kept, doing, under_way); });
  }
};

void add_common(CLI::App& verb, Options& options) {
  verb.add_option("--listen", options.collector.listen, "Endpoint the ranks publish to")
      ->check(kEndpoint)
      ->capture_default_str();
  verb.add_option("--keys", options.collector.keys,
                  "Let in programs that have a key of this folder (`shardscope keys DIR`, docs/security.md)");
  verb.add_flag("--insecure", options.collector.insecure, kInsecureText);
  verb.add_flag("--overwrite", options.overwrite, "Replace an existing recording");
  add_detach_options(verb, options.background);
}

/// Host and port of "tcp://HOST:PORT", with one spelling for this machine.
std::string address_of(std::string endpoint) {
  const std::size_t host = endpoint.find("://localhost:");
  if (host != std::string::npos) endpoint.replace(host + 3, 9, "127.0.0.1");
  return endpoint;
}

/// A collector that is its own upstream would forward its own messages again and again.
void refuse_itself(const collector::CollectorOptions& options) {
  if (address_of(options.upstream) != address_of(options.listen)) return;
  throw UserError(
      fmt::format(
          "--upstream {}: is where this collector listens itself; give the endpoint of the collector above, "
          "or another --listen",
          options.upstream),
      2);
}

}  // namespace

void add_record(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("record", "Take in a run's events and record them; viewers may connect");
  verb->add_option("file", options->collector.record_path, "Recording to write (*.zscope)")->required();
  verb->add_option("--run-id", options->collector.run_id,
                   "Take in this run only (default: the first that publishes anything)");
  add_retention_options(*verb, options->kept, nullptr);
  add_common(*verb, *options);
  verb->callback([options, &action] {
    action = [options] {
      if (!options->overwrite) keep_existing("recording", options->collector.record_path);
      return options->collect("recording to " + options->collector.record_path);
    };
  });
}

void add_collect(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "collect", "Take in the events of a node's ranks and pass them on to the collector of the whole run");
  verb->add_option("--upstream", options->collector.upstream, "Endpoint of the collector above")
      ->check(kEndpoint)
      ->required();
  verb->add_option("--upstream-key", options->collector.upstream_key,
                   "Publishing key for it (default: the file that SHARDSCOPE_KEY names)");
  CLI::Option* record =
      verb->add_option("--record", options->collector.record_path, "Record this node's ranks here as well");
  add_retention_options(*verb, options->kept, record);
  add_common(*verb, *options);
  verb->callback([options, &action] {
    action = [options] {
      if (!options->overwrite) keep_existing("--record", options->collector.record_path);
      refuse_itself(options->collector);
      if (!options->kept.detail.raise.empty())
        throw UserError(
            fmt::format("--raise-detail is an option of the recorder at {}: what ranks emit is set there",
                        options->collector.upstream),
            2);
      return options->collect("passing on to " + options->collector.upstream);
    };
  });
}

}  // namespace shardscope::cli
