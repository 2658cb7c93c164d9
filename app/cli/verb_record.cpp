// `record`: a collector on its own, for ranks started by other means (Slurm, mpirun, another machine).
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "app/cli/process.h"
#include "app/cli/progress.h"
#include "app/cli/verb.h"
#include "app/collector/collector.h"

namespace shardscope::cli {

void add_record(CLI::App& app, Action& action) {
  struct RecordOptions {
    collector::CollectorOptions collector;
    bool overwrite = false;
  };
  auto options = std::make_shared<RecordOptions>();
  CLI::App* verb =
      app.add_subcommand("record", "Take in a run's events and record them; viewers may connect");
  verb->add_option("file", options->collector.record_path, "Recording to write (*.zscope)")->required();
  verb->add_option("--listen", options->collector.listen, "Endpoint the ranks publish to")
      ->capture_default_str();
  verb->add_option("--keys", options->collector.keys,
                   "Let in only who has a key of this folder (`shardscope keys DIR`, docs/security.md)");
  verb->add_flag("--insecure", options->collector.insecure,
                 "Listen where other machines can reach it without keys: they can read and control the run");
  verb->add_flag("--overwrite", options->overwrite, "Replace an existing recording");
  verb->callback([options, &action] {
    action = [options] {
      if (std::filesystem::exists(options->collector.record_path)) {
        if (!options->overwrite) {
          throw UserError(fmt::format("{}: exists; choose another name or give --overwrite",
                                      options->collector.record_path));
        }
        std::filesystem::remove(options->collector.record_path);
      }
      install_interrupt_handler();
      collector::Collector collector(options->collector);
      fmt::print(stderr, "shardscope: listening on {}, recording to {}; Ctrl-C ends it\n",
                 collector.publish_endpoint(), options->collector.record_path);
      Progress progress(0, "recording");
      while (!interrupted() && !collector.status().finished) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        collector.read([&](const store::Store& store) { progress.update(store); });
      }
      progress.finish();
      collector.stop();
      const collector::CollectorStatus status = collector.status();
      fmt::print(stderr, "shardscope: {} events of {} ranks, {} dropped\n", status.events,
                 status.ranks_finished, status.dropped);
      if (status.rejected + status.refused != 0) {
        std::string reasons;
        for (const auto& [reason, count] : status.rejected_by)
          reasons += fmt::format(", {} for {}", count, reason);
        fmt::print(stderr, "shardscope: {} messages ignored{}; {} connections refused\n", status.rejected,
                   reasons, status.refused);
      }
      if (!status.recording_error.empty()) throw UserError("recording: " + status.recording_error);
      return 0;
    };
  });
}

}  // namespace shardscope::cli
