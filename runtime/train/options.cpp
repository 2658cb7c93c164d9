#include "runtime/train/options.h"

#include <CLI/CLI.hpp>

#include "runtime/config/above_zero.h"
#include "runtime/config/fault_check.h"

namespace shardscope::train {

void declare(CLI::App& app, Options& o) {
  app.add_option("--config", o.config, "DeepSpeed JSON file; default: stage 0, fp32, AdamW");
  app.add_option("--config-name", o.config_name,
                 "what messages call --config, without lines of it: a file made for this run");
  app.add_option("--model", o.model, "built-in model or JSON file of a module tree")->capture_default_str();
  app.add_option("--data", o.data,
                 "text file or folder, .bin file of 16-bit tokens, x.npy,y.npy, or golden:mlp, golden:gpt; "
                 "default for a model of vectors: generated");
  app.add_option(
      "--eval-data", o.eval_data,
      "what shardscope.eval_interval evaluates on, in the forms of --data; default: the end of the "
      "training data, held out");
  app.add_option("--default-text", o.default_text, "what a model of tokens reads without --data");
  app.add_option("--steps", o.steps, "optimizer steps, with those before --resume")
      ->capture_default_str()
      ->check(config::kAboveZero);
  app.add_option("--seed", o.seed, "of initial weights and data order")->capture_default_str();
  app.add_option("--context", o.context, "tokens per sample; 0: the model's longest")->capture_default_str();
  app.add_option("--init", o.init, "initial weights, safetensors");
  app.add_option("--init-scheme", o.init_scheme, "initial weights without a file: gpt2, hash, sin")
      ->capture_default_str();
  app.add_option("--save", o.save, "writes the final weights, safetensors, fp32");
  app.add_flag("--overwrite", o.overwrite, "replaces an existing file of --save");
  CLI::Option* checkpoint =
      app.add_option("--checkpoint", o.checkpoint,
                     "folder that gets checkpoints of the whole training state, at the end and at a stop");
  app.add_option("--checkpoint-every", o.checkpoint_every, "also every N steps")
      ->check(config::kAboveZero)
      ->needs(checkpoint);
  app.add_option("--keep", o.keep, "newest checkpoints that stay; default: all")
      ->check(config::kAboveZero)
      ->needs(checkpoint);
  app.add_option("--resume", o.resume,
                 "continues from the latest checkpoint of a folder, or from FOLDER/step-N, up to --steps; "
                 "any number of "
                 "ranks, any stage")
      ->excludes("--init");
  app.add_option("--consolidate", o.consolidate,
                 "no training: writes the weights of this checkpoint to --save, fp32, without other ranks");
  app.add_option("--device", o.device, "cpu, cuda (ranks take a node's GPUs in turn) or cuda:N")
      ->capture_default_str();
  app.add_option("--publish", o.publish, "collector that gets the events, e.g. tcp://127.0.0.1:5711");
  app.add_option("--key", o.key,
                 "publishing key (docs/security.md); default: SHARDSCOPE_KEY, else found by the endpoint");
  app.add_option("--run-id", o.run_id, "name of the run in the events; default: made up");
  app.add_option("--detail", o.detail,
                 "steps, phases, modules, params or kernels; default: the configuration's");
  app.add_option("--losses", o.losses, "writes losses, norms and scales of every rank and step, JSON");
  app.add_option("--collective-timeout", o.collective_timeout_s,
                 "seconds that a rank waits for the others in one collective")
      ->capture_default_str()
      ->check(config::kAboveZero);
  app.add_option(
         "--print-config", o.print_config_world,
         "WORLD: checks --config for that many ranks, prints it with every default filled in, and ends")
      ->check(config::kAboveZero);
  app.add_option("--fault", o.fault,
                 "rehearses a hang: one rank does otherwise than the others on purpose, as "
                 "rank=R,step=S,kind=KIND[,module=PATH]; kinds: return, skip-module, swap-modules, "
                 "fewer-micro-steps, fewer-steps, save-alone, stop, die")
      ->check(config::kFault);
  app.add_flag("--quiet", o.quiet, "no progress lines");
}

}  // namespace shardscope::train
