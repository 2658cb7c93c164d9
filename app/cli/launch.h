// One training run: the ranks under mpirun, a collector in this process, optionally a dashboard.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/retention_options.h"
#include "app/collector/collector.h"

namespace shardscope::cli {

struct LaunchOptions {
  std::uint32_t ranks = 4;
  std::string config;            ///< DeepSpeed JSON file
  std::vector<std::string> set;  ///< KEY=VALUE over the file, dotted keys
  std::string model = "gpt-mini";
  std::string data;       ///< empty: the repository's own text, or generated vectors
  std::string eval_data;  ///< empty: the end of the data, held out
  std::int64_t steps = 50;
  std::uint64_t seed = 1234;
  std::string device = "cpu";
  std::string init, save;
  std::string checkpoint, resume;     ///< folder to save to; folder or checkpoint to continue from
  std::int64_t checkpoint_every = 0;  ///< steps; 0: at the end only
  std::int64_t keep = 0;              ///< number of newest checkpoints to keep; 0: all
  std::string record;                 ///< *.zscope; empty: not recorded
  RetentionOptions kept;              ///< how much of the run `record` keeps at full detail
  std::string fault;                  ///< zero_train --fault; empty: none
  bool overwrite = false;             ///< replace what is at `record` and `save`; else that is an error
  std::string listen = "tcp://127.0.0.1:0";
  std::string keys;       ///< folder made by `shardscope keys`; empty: this machine's keys
  bool insecure = false;  ///< without keys
  std::string detail = "params";
  bool view = false;         ///< open the dashboard on the run
  bool keep_viewing = true;  ///< with a dashboard: stay until it is closed
  std::string label;         ///< for the progress line
  /// Called with the endpoint of the collector, before the ranks are started.
  std::function<void(const std::string&)> listening;
  /// Called once, when the first rank has connected.
  std::function<void()> under_way;
};

struct LaunchResult {
  int exit_code = 0;
  std::string failure;       ///< first failure's message
  bool interrupted = false;  ///< a signal ended it before the ranks did: interrupt_name()
  std::int64_t steps = 0;    ///< number of completed ones
  std::string record;        ///< recording's path; empty: not recorded
  double seconds = 0;
  std::string closing;  ///< closing_text(); empty: no rank connected
  std::uint64_t events = 0, dropped = 0;
  std::string recording_error;
};

/// Runs to the end. Throws UserError before the ranks start (missing file, occupied port, ...).
[[nodiscard]] LaunchResult launch(LaunchOptions options);

/// Warns on standard error where anyone may connect.
void warn_if_insecure(const collector::CollectorOptions& options, const std::string& endpoint);

/// Whether a window can be opened (DISPLAY or WAYLAND_DISPLAY is set).
[[nodiscard]] bool has_display();

}  // namespace shardscope::cli
