// The options of zero_train.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace shardscope::train {

/// The command line is wrong: exit code 2. What it names and cannot be used (a file, a device) is none of
/// these.
class UsageError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

struct Options {
  std::string config;
  std::string config_name;  ///< of a file made for this run: what messages call it
  std::string model = "gpt-mini";
  std::string data;
  std::string eval_data;     ///< empty: the end of `data`, held out
  std::string default_text;  ///< what a model of tokens reads without `data`
  std::int64_t steps = 50;
  std::uint64_t seed = 1234;
  std::int64_t context = 0;
  std::string init_scheme = "gpt2";
  std::string init;
  std::string save;
  bool overwrite = false;             ///< `save` may be there already
  std::string checkpoint;             ///< folder of the run's checkpoints
  std::int64_t checkpoint_every = 0;  ///< steps; 0: at the end only
  std::int64_t keep = 0;              ///< newest checkpoints that stay; 0: all
  std::string resume;                 ///< DIR or DIR/step-N
  std::string consolidate;            ///< checkpoint to make weights of, instead of training
  std::string publish;
  std::string key;
  std::string run_id;
  std::string detail;
  std::string device = "cpu";
  std::string losses;
  std::int64_t collective_timeout_s = 300;
  std::uint32_t print_config_world = 0;  ///< above 0: print the effective configuration and end
  std::string fault;  ///< a rank that does otherwise than the others on purpose; empty: none
  bool quiet = false;
};

/// Adds every option to `app`; parsing fills `options`.
void declare(CLI::App& app, Options& options);

}  // namespace shardscope::train
