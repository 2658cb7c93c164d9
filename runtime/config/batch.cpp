#include <optional>

#include "runtime/config/sections.h"

namespace shardscope::config {
namespace {

std::optional<std::int64_t> read_size(Section& root, const std::string& key, bool& automatic) {
  automatic = automatic || root.is_auto(key);
  std::int64_t value = 0;
  root.read(key, value, 1, std::int64_t{1} << 40);
  if (value == 0) return std::nullopt;
  return value;
}

}  // namespace

BatchConfig read_batch(Section& root, std::uint32_t ranks, const ParseOptions& options) {
  constexpr const char* kTrain = "train_batch_size";
  constexpr const char* kMicro = "train_micro_batch_size_per_gpu";
  constexpr const char* kSteps = "gradient_accumulation_steps";
  bool automatic = false;
  const auto train = read_size(root, kTrain, automatic);
  auto micro = read_size(root, kMicro, automatic);
  auto steps = read_size(root, kSteps, automatic);
  const auto world = static_cast<std::int64_t>(ranks);

  if (!train && !micro) {
    if (!automatic) {
      root.fail(kTrain,
                std::string("missing: give train_batch_size or ") + kMicro + " (a number or \"auto\")");
    }
    micro = options.default_micro_batch;
  }
  if (!steps && train && micro) steps = *train / *micro / world;
  if (!micro) micro = *train / world / steps.value_or(1);
  if (!steps) steps = 1;
  const BatchConfig batch{train.value_or(*micro * *steps * world), *micro, *steps};
  if (batch.micro_batch_size < 1 || batch.accumulation_steps < 1 ||
      batch.train_batch_size != batch.micro_batch_size * batch.accumulation_steps * world) {
    root.fail(
        train ? kTrain : kMicro,
        "train_batch_size " + std::to_string(batch.train_batch_size) +
            " is not micro batch x accumulation steps x " +
            (ranks == options.world ? "ranks" : "ranks of a data-parallel group") + " = " +
            std::to_string(batch.micro_batch_size) + " x " + std::to_string(batch.accumulation_steps) +
            " x " + std::to_string(world) +
            "; change one of the three keys, set one of them to \"auto\", or run another number of ranks");
  }
  return batch;
}

}  // namespace shardscope::config
