#include "runtime/simulate/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "runtime/config/above_zero.h"
#include "runtime/train/options.h"

namespace shardscope::simulate {

void declare(CLI::App& app, Options& o) {
  app.add_option("--model", o.model, "built-in model, gpt:layers=..,width=..,heads=.., or JSON file")
      ->capture_default_str();
  app.add_option("--config", o.config, "DeepSpeed JSON file; default: stage 0, fp32, AdamW");
  app.add_option("--config-name", o.config_name,
                 "what messages call --config, without lines of it: a file made for this run");
  app.add_option("--hardware", o.hardware, "a name (docs/simulate.md) or a JSON file")->capture_default_str();
  app.add_option("--hardware-folder", o.hardware_folder, "where hardware known by name is described");
  app.add_option("--ranks", o.ranks, "how many ranks the run has")
      ->capture_default_str()
      ->check(config::kAboveZero);
  app.add_option("--steps", o.steps, "optimizer steps")->capture_default_str()->check(config::kAboveZero);
  app.add_option(
      "--publish", o.publish,
      "collector that gets the events, e.g. tcp://127.0.0.1:5711; of several, one for each node, the "
      "ranks have equal parts");
  app.add_flag("--live", o.live, "events are sent at their time, as those of a run that is made");
  app.add_option("--key", o.key,
                 "publishing key (docs/security.md); default: SHARDSCOPE_KEY, else found by the endpoint");
  app.add_option("--run-id", o.run_id, "name of the run in the events; default: made up");
  app.add_option("--detail", o.detail,
                 "steps, phases, modules, params or kernels; default: the configuration's");
  app.add_option("--seed", o.seed, "of --jitter")->capture_default_str();
  app.add_option("--jitter", o.jitter, "each rank's own work takes 1 +- this many times as long")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--straggler", o.stragglers, "RANK:FACTOR, how many times as long it computes; repeatable");
  app.add_option("--slow-link", o.slow_links,
                 "RANK:FACTOR, how many times as long its links take to move bytes; repeatable");
  app.add_flag("--no-memory-limit", o.no_memory_limit,
               "goes on where the device's memory would not be enough");
  app.add_flag("--json", o.json, "prints the outcome as JSON");
}

namespace {
[[noreturn]] void refuse(const std::string& option, const std::string& text, const std::string& why) {
  throw train::UsageError(option + " " + text + ": " + why);
}
}  // namespace

std::vector<double> parse_factors(const std::string& option, const std::vector<std::string>& texts,
                                  std::uint32_t ranks, double least) {
  std::vector<double> factors;
  for (const std::string& text : texts) {
    std::uint32_t rank = 0;
    double factor = 0;
    const char* const end = text.data() + text.size();
    const auto number = std::from_chars(text.data(), end, rank);
    const bool colon = number.ec == std::errc{} && number.ptr != end && *number.ptr == ':';
    const auto times = colon ? std::from_chars(number.ptr + 1, end, factor) : std::from_chars_result{};
    if (!colon || times.ec != std::errc{} || times.ptr != end || !(factor > 0) || !std::isfinite(factor)) {
      refuse(option, text, "write RANK:FACTOR, for example 3:1.3");
    }
    if (factor < least) refuse(option, text, "the factor is at least 1: the slowest link decides");
    if (rank >= ranks) {
      refuse(option, text, "the run has the ranks 0 to " + std::to_string(ranks - 1));
    }
    factors.resize(ranks, 1.0);
    factors[rank] = factor;
  }
  return factors;
}

}  // namespace shardscope::simulate
