#include "app/cli/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "app/cli/config_override.h"
#include "app/cli/flight_recorder.h"
#include "app/cli/made_runs.h"
#include "app/cli/process.h"
#include "app/cli/program_files.h"
#include "app/cli/progress.h"
#include "app/cli/rank_failure.h"
#include "app/cli/say.h"
#include "app/cli/scratch_folder.h"
#include "app/cli/socket_files.h"
#include "app/cli/summary_text.h"
#include "app/cli/verb.h"
#include "app/collector/collector.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> rank_command(const LaunchOptions& options, const std::string& config_path,
                                      const std::string& config_name, const std::string& publish_endpoint,
                                      const std::string& run_id) {
  std::vector<std::string> command;
  // One rank needs no launcher, so that a machine without MPI is enough.
  if (options.ranks > 1 || !program_of("mpirun").empty()) {
    command.emplace_back("mpirun");
    if (geteuid() == 0) command.emplace_back("--allow-run-as-root");
    for (const char* option : {"--oversubscribe", "--bind-to", "none"}) command.emplace_back(option);
    command.insert(command.end(), {"-x", "SHARDSCOPE_KEY"});
    command.emplace_back("-n");
    command.push_back(std::to_string(options.ranks));
  }
  command.push_back(sibling_program("zero_train"));
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    command.emplace_back(name);
    command.push_back(value);
  };
  add("--config", config_path);
  add("--config-name", config_name);
  add("--model", options.model);
  add("--data", options.data);
  add("--eval-data", options.eval_data);
  add("--default-text", data_root());
  add("--steps", std::to_string(options.steps));
  add("--seed", std::to_string(options.seed));
  add("--device", options.device);
  add("--init", options.init);
  add("--save", options.save);
  if (options.overwrite) command.emplace_back("--overwrite");
  add("--checkpoint", options.checkpoint);
  if (options.checkpoint_every > 0) add("--checkpoint-every", std::to_string(options.checkpoint_every));
  if (options.keep > 0) add("--keep", std::to_string(options.keep));
  add("--resume", options.resume);
  add("--detail", options.detail);
  add("--publish", publish_endpoint);
  add("--run-id", run_id);
  if (!options.fault.empty()) add("--fault", options.fault);
  command.emplace_back("--quiet");  // progress is drawn by this process, from the events
  return command;
}

/// Killed ranks leave Open MPI's shared memory (4 MiB each in /dev/shm, forever): in a
/// folder of this run it is removed with the run, or by the next run. nullopt where the user has set a
/// folder, or there is no /dev/shm.
std::optional<ScratchFolder> folder_for_mpi() {
  constexpr const char* kSharedMemory = "/dev/shm";
  if (std::getenv("OMPI_MCA_btl_vader_backing_directory") != nullptr) return std::nullopt;
  if (access(kSharedMemory, W_OK) != 0) return std::nullopt;
  return std::optional<ScratchFolder>(std::in_place, kSharedMemory);
}

/// The same for Open MPI's folder for sockets and state of a run. The path of a socket
/// has 107 characters at most: with a long temporary folder the default is used.
std::optional<ScratchFolder> session_for_mpi() {
  constexpr std::size_t kLongest = 32;
  if (std::getenv("OMPI_MCA_orte_tmpdir_base") != nullptr) return std::nullopt;
  if (fs::temp_directory_path().native().size() > kLongest) return std::nullopt;
  return std::optional<ScratchFolder>(std::in_place);
}

/// Environment with the key that a child needs to connect, overriding the user's own.
std::vector<std::pair<std::string, std::string>> key_for(const collector::Collector& collector,
                                                         const char* holder) {
  const std::string keys = collector.keys();
  if (keys.empty()) return {{"SHARDSCOPE_KEY", "none"}};
  return {{"SHARDSCOPE_KEY", (fs::absolute(keys) / (std::string(holder) + ".key")).string()}};
}

/// mpirun's own text about a failed rank adds nothing to the rank's message.
class RankOutput {
 public:
  void take(const std::string& line, Progress& progress) {
    static const std::string kPrefix = "shardscope: ";
    if (line.starts_with(kPrefix + "warning: ")) {
      in_failure_ = false;
      progress.print_line(line);
      return;
    }
    if (line.rfind(kPrefix, 0) == 0) {
      in_failure_ = failure_.empty();
      if (in_failure_) failure_ = line.substr(kPrefix.size());
      return;
    }
    if (in_failure_ && line.rfind("  ", 0) == 0) {  // message of several lines
      failure_ += "\n" + line;
      return;
    }
    in_failure_ = false;
    const bool rule = line.find_first_not_of('-') == std::string::npos;
    if (rule && line.size() > 20) {
      in_notice_ = !in_notice_;
      return;
    }
    if (in_notice_ || line.empty() || line.rfind("mpirun", 0) == 0) {
      notice_ += line + "\n";
      return;
    }
    progress.print_line(line);
  }
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] const std::string& notice() const { return notice_; }

 private:
  std::string failure_, notice_;
  bool in_notice_ = false;
  bool in_failure_ = false;  ///< the line before belongs to failure_
};

void check_files(const LaunchOptions& options) {
  const auto must_exist = [](const char* what, const std::string& path) {
    if (!path.empty() && !fs::exists(path)) throw UserError(fmt::format("{} {}: no such file", what, path));
  };
  const auto data_must_exist = [&](const char* what, const std::string& data) {
    if (data.starts_with("golden:")) return;
    const std::size_t comma = data.find(',');  // "x.npy,y.npy"
    must_exist(what, data.substr(0, comma));
    if (comma != std::string::npos) must_exist(what, data.substr(comma + 1));
  };
  data_must_exist("--data", options.data);
  data_must_exist("--eval-data", options.eval_data);
  must_exist("--init", options.init);
  must_exist("--resume", options.resume);
  if (options.model.size() > 5 && options.model.ends_with(".json")) must_exist("--model", options.model);
  if (!options.keys.empty() && !fs::is_directory(options.keys)) {
    throw UserError(fmt::format("--keys {}: no such folder; make it with `shardscope keys {}`", options.keys,
                                options.keys));
  }
  if (!options.overwrite) {
    keep_existing("--record", options.record);
    keep_existing("--save", options.save);
  }
}

/// mpirun has no limit of its own, and a machine with a thousand ranks per core no longer
/// responds.
void check_counts(const LaunchOptions& options) {
  if (options.ranks == 0) throw UserError("--ranks 0: at least one rank is needed", 2);
  if (options.steps <= 0)
    throw UserError(fmt::format("--steps {}: at least one step is needed", options.steps), 2);
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const unsigned most = std::max(64U, 16 * cores);
  if (options.ranks > most) {
    throw UserError(
        fmt::format(
            "--ranks {}: at most {} are started on this machine, which has {} cores; for runs of more "
            "ranks use `shardscope simulate`, or mpirun on several machines",
            options.ranks, most, cores),
        2);
  }
}

}  // namespace

void warn_if_insecure(const collector::CollectorOptions& options, const std::string& endpoint) {
  if (!options.insecure || !options.keys.empty()) return;
  say(stderr, "shardscope: warning: --insecure: anyone who reaches {} can read and control this run\n",
      endpoint);
}

bool has_display() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return set("DISPLAY") || set("WAYLAND_DISPLAY");
}

LaunchResult launch(LaunchOptions options) {
  check_counts(options);
  check(options.kept);
  check_files(options);
  const TemporaryConfig config(config_with(options.config, options.set), options.config, options.set);
  // Without --set the ranks read the user's own file, so that their messages have its name and lines.
  const std::string config_path = options.set.empty() ? options.config : config.path();
  install_interrupt_handler();
  install_request_handler();

  collector::CollectorOptions collecting;
  collecting.listen = options.listen;
  collecting.record_path = options.record;
  collecting.retention = options.kept.limits;
  collecting.rotation = options.kept.rotation;
  collecting.keys = options.keys;
  collecting.insecure = options.insecure;
  // So that a hello of another run cannot be taken for this one's.
  std::random_device random;
  collecting.run_id = fmt::format("{:08x}{:08x}", random(), random());
  NewRecording recording(options.record);
  SocketFiles sockets;
  collector::Collector collector(collecting);
  sockets.of(collector.publish_endpoint());
  if (options.listening) options.listening(collector.publish_endpoint());
  warn_if_insecure(collecting, collector.publish_endpoint());

  std::unique_ptr<Process> dashboard;
  if (options.view) {
    dashboard = std::make_unique<Process>(std::vector<std::string>{sibling_program("shardscope-gui"),
                                                                   "--connect", collector.publish_endpoint()},
                                          Process::Output::inherit, key_for(collector, "control"));
  }

  const auto started = std::chrono::steady_clock::now();
  auto environment = key_for(collector, "publish");
  const std::optional<ScratchFolder> shared = folder_for_mpi();
  if (shared) {
    // By its names in Open MPI 4 and in 5.
    for (const char* name : {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"})
      environment.emplace_back(name, shared->path());
  }
  const std::optional<ScratchFolder> session = session_for_mpi();
  if (session) {
    for (const char* name : {"OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base"})
      environment.emplace_back(name, session->path());
  }
  environment.emplace_back("OMP_NUM_THREADS", "1");
  Process ranks(rank_command(options, config_path, options.set.empty() ? "" : config.name(),
                             collector.publish_endpoint(), collecting.run_id),
                Process::Output::capture, environment);
  Progress progress(options.steps, options.label);
  FlightRecorder moments(collector, collecting, options.kept);
  RankOutput output;
  LaunchResult result;
  bool window_closed = false, under_way = false;
  while (true) {
    const bool more = ranks.read_lines(std::chrono::milliseconds(100),
                                       [&](const std::string& line) { output.take(line, progress); });
    collector.read([&](const store::Store& store) {
      progress.update(store);
      under_way = !store.ranks().empty();
    });
    moments.look();
    if (under_way && options.under_way) std::exchange(options.under_way, nullptr)();
    if (interrupted() && !result.interrupted) {
      // mpirun forwards this signal to the ranks and gives them time: they end after their step,
      // with a checkpoint if they write any. At SIGTERM it would kill them a second later.
      ranks.signal(SIGUSR1);
      result.interrupted = true;
    }
    if (dashboard && !window_closed && !dashboard->running()) {
      window_closed = true;
      const int code = dashboard->wait();
      progress.print_line(
          code == 0 ? "shardscope: the window was closed; training continues, Ctrl-C ends it"
                    : fmt::format("shardscope: the dashboard ended with code {}; training continues", code));
    }
    if (!more && !ranks.running()) break;
  }
  progress.finish();

  result.exit_code = ranks.wait();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  result.failure = output.failure();
  if (const auto killed = exit_in_notice(output.notice())) {
    collector.note_exit(killed->rank, killed->exit_code);
  } else if (options.ranks == 1 && result.exit_code > 128) {
    collector.note_exit(0, result.exit_code);
  }
  collector.note_over();
  if (dashboard && options.keep_viewing && !window_closed && !interrupted()) {
    say(stderr, "shardscope: training has ended; close the window to finish\n");
    while (dashboard->running() && !interrupted())
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  collector.stop();
  const collector::CollectorStatus status = collector.status();
  collector.read([&](const store::Store& store) {
    if (!store.ranks().empty()) {
      recording.recording_has_ranks();
      result.record = options.record;
      result.closing = closing_text(store, status.events, options.record);
    }
    for (const store::StepRow& row : store.steps()) result.steps += row.end_ns != store::kOpen ? 1 : 0;
  });
  if (result.failure.empty()) result.failure = status.failure;
  if (result.exit_code == 0) result.exit_code = status.exit_code;
  // Where a signal ended the ranks before they could end themselves, there is no other message.
  if (result.exit_code != 0 && result.failure.empty() && !result.interrupted) {
    result.failure = output.notice().empty()
                         ? fmt::format("the ranks ended with code {} and no message", result.exit_code)
                         : output.notice();
  }
  if (result.exit_code != 0 && !result.interrupted) {
    collector.read([&](const store::Store& store) { result.failure = failure_text(store, result.failure); });
  }
  result.events = status.events;
  result.dropped = status.dropped;
  result.recording_error = status.recording_error;
  return result;
}

}  // namespace shardscope::cli
