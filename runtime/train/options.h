// The options of zero_train.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace shardscope::train {

/// A wrong command line: exit code 2. Files or devices that cannot be used are other errors.
class UsageError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

struct Options {
  std::string config;
  std::string config_name;  ///< name to show for a configuration file generated for this run
  std::string model = "gpt-mini";
  std::string data;
  std::string eval_data;     ///< empty: the end of `data`, held out
  std::string default_text;  ///< text for a token model without `data`
  std::int64_t steps = 50;
  std::uint64_t seed = 1234;
  std::int64_t context = 0;
  std::string init_scheme = "gpt2";
  std::string init;
  std::string save;
  bool overwrite = false;             ///< `save` may exist already
  std::string checkpoint;             ///< folder of the run's checkpoints
  std::int64_t checkpoint_every = 0;  ///< steps; 0: at the end only
  std::int64_t keep = 0;              ///< number of newest checkpoints to keep; 0: all
  std::string resume;                 ///< DIR or DIR/step-N
  std::string consolidate;            ///< checkpoint to consolidate to weights, instead of training
  std::string publish;
  std::string key;
  std::string run_id;
  std::string detail;
  std::string device = "cpu";
  std::string losses;
  std::int64_t collective_timeout_s = 300;
  std::uint32_t print_config_world = 0;  ///< above 0: print the effective configuration and end
  std::string fault;                     ///< fault to inject; empty: none
  bool quiet = false;
};

/// Adds every option to `app`; parsing fills `options`.
void declare(CLI::App& app, Options& options);

}  // namespace shardscope::train
