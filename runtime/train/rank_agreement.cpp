#include "runtime/train/rank_agreement.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "runtime/base/checksum.h"
#include "runtime/base/hash.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/config/compared_settings.h"
#include "runtime/model/init.h"

namespace shardscope::train {
namespace {

constexpr const char* kSameOption = "give every rank the same";
constexpr const char* kSameFiles = "give every rank the same files";

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::uint64_t checksum_of(std::string_view text) { return base::checksum(std::as_bytes(std::span(text))); }

void describe_tree(std::ostream& out, const plan::NodeSpec& node) {
  out << '(' << node.type << ' ' << node.checkpoint << node.leaf;
  for (const std::string& path : node.returns) out << ' ' << path;
  for (const plan::NodeSpec& child : node.children) describe_tree(out, child);
  out << ')';
}

/// The checkpoint fingerprint and, in addition, the properties that determine when parameters are gathered:
/// recomputation, leaf modules, returned and frozen parameters.
std::string describe_model(const plan::ModelPlan& model) {
  std::ostringstream tree;
  tree << checkpoint::model_fingerprint(model);
  describe_tree(tree, model.spec.root);
  for (const plan::ParamPlan& param : model.params) tree << param.name << param.trainable;
  return model.spec.name + " of " + std::to_string(model.elems) + " elements, checksum " +
         hex(checksum_of(tree.str()));
}

/// Over both ends of every parameter, enough to detect another build's formula.
std::uint64_t checksum_of(const plan::ModelPlan& model, const model::Initializer& initializer) {
  constexpr std::int64_t kElems = 64;
  std::uint64_t sum = 0;
  std::array<float, kElems> values{};
  for (const plan::ParamPlan& param : model.params) {
    const std::int64_t elems = std::min(kElems, param.elems);
    for (const std::int64_t begin : {std::int64_t{0}, param.elems - elems}) {
      initializer.fill(param.id, {begin, begin + elems}, values.data());
      const auto bytes = std::as_bytes(std::span(values).first(static_cast<std::size_t>(elems)));
      sum = base::hash64(sum ^ base::checksum(bytes));
    }
  }
  return sum;
}

plan::RankSetting initial_weights(const RunParts& run) {
  const Options& options = run.options;
  plan::RankSetting setting{"initial weights", "", "", "give every rank the same weights to begin with"};
  if (run.resume != nullptr) {
    const checkpoint::Manifest& manifest = run.resume->manifest();
    setting.value = "the checkpoint of step " + std::to_string(manifest.progress.step) + " with checksum " +
                    hex(checksum_of(checkpoint::to_text(manifest)));
    setting.note = run.resume->folder();
  } else if (run.init != nullptr) {
    setting.value = "a file with checksum " + hex(run.init->checksum());
    setting.note = options.init;
  } else {
    const model::Initializer initializer(run.model, model::parse_init_scheme(options.init_scheme),
                                         options.seed);
    setting.value = "those of scheme " + options.init_scheme + " and seed " + std::to_string(options.seed) +
                    " with checksum " + hex(checksum_of(run.model, initializer));
  }
  return setting;
}

plan::RankSetting data_setting(const char* key, const data::BatchStream& data) {
  return {key,
          std::to_string(data.samples()) + " samples with checksum " +
              hex(base::hash64(data.fingerprint()) ^ data.sample_checksum()),
          data.describe(), kSameFiles};
}

const char* device_kind(const std::string& device) { return device.rfind("cuda", 0) == 0 ? "cuda" : "cpu"; }

std::string given(bool is) { return is ? "given" : "not given"; }

}  // namespace

std::vector<plan::RankSetting> compared_settings(const RunParts& run) {
  const Options& options = run.options;
  std::vector<plan::RankSetting> settings{
      {"program version", run.version, "", "start every rank from the same build"},
      {"--device", device_kind(options.device), options.device,
       "train on one kind of device; its number may differ"},
      {"model", describe_model(run.model), options.model, "give every rank the same --model"}};
  const auto option = [&](const char* key, std::string value) {
    settings.push_back({key, std::move(value), "", std::string(kSameOption) + " " + key});
  };
  option("--steps", std::to_string(options.steps));
  option("--run-id", options.run_id);
  option("--seed", std::to_string(options.seed));
  option("--context", std::to_string(options.context));
  option("--init-scheme", options.init_scheme);
  // Writing is collective, so all ranks must do it; paths may differ.
  option("--save", given(!options.save.empty()));
  option("--losses", given(!options.losses.empty()));
  option("--checkpoint", given(!options.checkpoint.empty()));
  option("--checkpoint-every", std::to_string(options.checkpoint_every));
  option("--keep", std::to_string(options.keep));
  option("--fault", options.fault);
  settings.push_back(data_setting("data", run.data));
  if (run.evaluation != nullptr) settings.push_back(data_setting("evaluation data", *run.evaluation));
  settings.push_back(initial_weights(run));
  for (plan::RankSetting& setting : config::compared_settings(run.config)) {
    settings.push_back(std::move(setting));
  }
  return settings;
}

namespace {

/// `text` of rank `root`, on every rank.
std::string broadcast(std::string text, std::uint32_t root, comm::Communicator& control) {
  std::uint64_t bytes = text.size();
  control.broadcast_host(std::as_writable_bytes(std::span(&bytes, 1)), root);
  constexpr std::uint64_t kMost = std::uint64_t{16} << 20;
  if (bytes > kMost) {
    throw std::invalid_argument("settings of rank " + std::to_string(root) + ": " + std::to_string(bytes) +
                                " bytes; start every rank from the same build");
  }
  text.resize(bytes);
  control.broadcast_host(std::as_writable_bytes(std::span(text)), root);
  return text;
}

}  // namespace

void check_same_settings(const std::vector<plan::RankSetting>& mine, comm::Communicator& control) {
  if (control.world() == 1) return;
  const std::string first = broadcast(plan::to_text(mine), 0, control);
  const auto difference = plan::first_difference(plan::settings_of(first), mine);
  // The lowest rank that differs broadcasts its settings.
  std::array<std::uint64_t, 1> speaker{difference ? control.world() - control.rank() : std::uint64_t{0}};
  std::array<double, 1> differ{difference ? 1.0 : 0.0};
  control.max_host(speaker);
  if (speaker[0] == 0) return;
  control.all_reduce_host(differ);
  const auto rank = control.world() - static_cast<std::uint32_t>(speaker[0]);
  std::string text;
  if (difference) {
    text = plan::describe_difference(*difference, control.rank(), static_cast<std::uint32_t>(differ[0]),
                                     control.world());
  }
  throw std::invalid_argument(broadcast(std::move(text), rank, control));
}

}  // namespace shardscope::train
