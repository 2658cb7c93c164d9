// Command line of zero_simulate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shardscope::simulate {

struct Options {
  std::string model = "gpt3-6.7b";
  std::string config;       ///< DeepSpeed JSON; empty: defaults
  std::string config_name;  ///< name to show for a configuration file generated for this run
  std::string hardware = "h100";
  std::string hardware_folder;  ///< folder of hardware files known by name
  std::uint32_t ranks = 8;
  std::int64_t steps = 3;
  std::vector<std::string> publish;  ///< collectors; with several, ranks are divided equally
  bool live = false;                 ///< events are sent at their time
  std::string key;
  std::string run_id;
  std::string detail;
  std::uint64_t seed = 1234;
  double jitter = 0;
  std::vector<std::string> stragglers;  ///< RANK:FACTOR
  std::vector<std::string> slow_links;  ///< RANK:FACTOR
  bool no_memory_limit = false;
  bool json = false;
};

/// Adds every option to `app`; parsing fills `options`.
void declare(CLI::App& app, Options& options);

/// By rank, the factor given by `option`, 1 for the others; empty if none is given. Throws
/// std::invalid_argument naming the option and what is wrong.
[[nodiscard]] std::vector<double> parse_factors(const std::string& option,
                                                const std::vector<std::string>& texts, std::uint32_t ranks,
                                                double least);

}  // namespace shardscope::simulate
