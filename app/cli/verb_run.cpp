// `run`: trains under a collector. Also functions shared with other training verbs.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "app/cli/checks.h"
#include "app/cli/detach.h"
#include "app/cli/process.h"
#include "app/cli/retention_options.h"
#include "app/cli/say.h"
#include "app/cli/training_options.h"
#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

/// Validator for CLI11: empty if `text` is a device, else the error.
std::string is_device(const std::string& text) {
  const bool one_gpu = text.size() > 5 && text.compare(0, 5, "cuda:") == 0 &&
                       text.find_first_not_of("0123456789", 5) == std::string::npos;
  return text == "cpu" || text == "cuda" || one_gpu ? std::string() : text + " is none of cpu, cuda, cuda:N";
}

std::string watch_command(const LaunchOptions& options) {
  return options.keys.empty()
             ? fmt::format("shardscope view {}", options.listen)
             : fmt::format("shardscope view --key {}/control.key {}", options.keys, options.listen);
}

}  // namespace

void add_training_options(CLI::App& verb, LaunchOptions& options) {
  verb.add_option("--ranks", options.ranks, "Number of ranks (processes) on this machine")
      ->capture_default_str();
  verb.add_option(
          "--model", options.model,
          "Model: a name (gpt-mini, gpt-small, gpt2, gpt2-medium, gpt2-large, gpt2-xl, mlp) or a JSON file "
          "with a module tree (docs/models.md)")
      ->capture_default_str();
  verb.add_option(
      "--data", options.data,
      "Training data: text file or folder (bytes as tokens), .bin with 16-bit tokens, or x.npy,y.npy; "
      "default: the text of this repository, generated vectors for a model of vectors");
  verb.add_option(
      "--eval-data", options.eval_data,
      "What shardscope.eval_interval evaluates on, as --data; default: the end of the training data, "
      "held out");
  verb.add_option("--steps", options.steps, "Optimizer steps")->capture_default_str();
  verb.add_option("--seed", options.seed, "Seed of weights and data order")->capture_default_str();
  verb.add_option("--device", options.device,
                  "Where the ranks compute: cpu, cuda (the ranks of a node take its GPUs in turn) or cuda:N")
      ->check(CLI::Validator(is_device, "cpu|cuda|cuda:N"))
      ->capture_default_str();
  verb.add_option("--detail", options.detail, "What the ranks emit")
      ->check(CLI::IsMember(detail_names()))
      ->capture_default_str();
  verb.add_option("--set", options.set,
                  "KEY=VALUE over the configuration, e.g. zero_optimization.stage=2; repeatable");
}

namespace {

/// The text may have several lines, and be any rank's.
void say_failure(const std::string& failure) {
  say_text(stderr, "shardscope: " + instrumentation::plain_message(failure) + "\n");
}

}  // namespace

int report_end(const LaunchResult& result) {
  if (!result.recording_error.empty()) {
    say(stderr, "shardscope: {}\n", result.recording_error);
  }
  if (result.interrupted) {
    if (!result.failure.empty()) say_failure(result.failure);
    say(stderr, "shardscope: interrupted ({}) after {} step{}{}\n", interrupt_name(), result.steps,
        result.steps == 1 ? "" : "s",
        result.record.empty() || !result.recording_error.empty()
            ? ""
            : fmt::format("; {} holds what ran until then", result.record));
    return interrupt_code();
  }
  if (result.exit_code != 0) {
    say_failure(result.failure);
    return result.exit_code;
  }
  return result.recording_error.empty() ? 0 : 1;
}

namespace {

int end_of_run(const LaunchResult& result) {
  const int code = report_end(result);
  if (!result.closing.empty() && result.recording_error.empty())
    say(stderr, "shardscope: {}\n", result.closing);
  return code;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* verb =
      app.add_subcommand("run", "Train with a DeepSpeed configuration; record it, watch it live");
  add_training_options(*verb, *options);
  verb->add_option("--config", options->config, "DeepSpeed JSON file (docs/configuration.md)")->required();
  CLI::Option* record = verb->add_option("--record", options->record, "Record to this *.zscope file");
  add_retention_options(*verb, options->kept, record);
  CLI::Option* init = verb->add_option("--init", options->init, "Start from these weights (safetensors)");
  verb->add_option("--save", options->save, "Save the weights at the end (safetensors)");
  verb->add_flag("--overwrite", options->overwrite, "Replace an existing file of --record or --save");
  CLI::Option* checkpoint = verb->add_option(
      "--checkpoint", options->checkpoint,
      "Folder for checkpoints of the whole training state, written at the end and at Ctrl-C");
  verb->add_option("--checkpoint-every", options->checkpoint_every, "Write one every N steps as well")
      ->check(kAboveZero)
      ->needs(checkpoint);
  verb->add_option("--keep", options->keep, "Newest checkpoints that stay; default: all")
      ->check(kAboveZero)
      ->needs(checkpoint);
  verb->add_option(
          "--resume", options->resume,
          "Continue from this folder's latest checkpoint, or from FOLDER/step-N, up to --steps; any number "
          "of ranks, any stage")
      ->excludes(init);
  verb->add_option("--fault", options->fault,
                   "Rehearse a hang: one rank departs from the others on purpose, as "
                   "rank=R,step=S,kind=KIND[,module=PATH] (docs/findings/hang.md)")
      ->check(kFault);
  verb->add_option("--listen", options->listen,
                   "Endpoint of the collector, for `shardscope view ENDPOINT`; port 0 chooses a free one")
      ->check(kEndpoint)
      ->capture_default_str();
  verb->add_option(
      "--keys", options->keys,
      "Let in programs that have a key of this folder (`shardscope keys DIR`, docs/security.md)");
  verb->add_flag("--insecure", options->insecure, kInsecureText);
  CLI::Option* view =
      verb->add_flag("--view,!--no-view", options->view, "Open the dashboard on the run (default: no)");
  auto background = std::make_shared<DetachOptions>();
  add_detach_options(*verb, *background)->excludes(view);
  verb->callback([options, background, &action] {
    action = [options, background] {
      if (options->view && !has_display()) {
        say(stderr, "shardscope: no display (DISPLAY is not set); the run continues without a window\n");
        options->view = false;
      }
      if (background->detach) {
        return detached(*background, options->record, [&run = *options](const UnderWay& under_way) {
          run.listening = [&run](const std::string& endpoint) { run.listen = endpoint; };
          run.under_way = [&run, under_way] { under_way(watch_command(run)); };
          return end_of_run(launch(run));
        });
      }
      options->listening = [&run = *options](const std::string& endpoint) { run.listen = endpoint; };
      // Not before: where a run fails to start only the reason is printed.
      options->under_way = [&run = *options] {
        if (isatty(STDERR_FILENO) != 0) say_text(stderr, "\r\x1b[K");  // overwrites the progress line
        say(stderr, "shardscope: listening on {}; to watch the run: {}\n", run.listen, watch_command(run));
      };
      return end_of_run(launch(*options));
    };
  });
}

}  // namespace shardscope::cli
