#include "app/analysis/search_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace shardscope::analysis {
namespace {

using instrumentation::RunTables;

constexpr const char* kZero = "zero_optimization.";

/// Rounds a size to two significant digits, for readability.
std::int64_t two_digits(double count) {
  const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(std::max(count, 1.0))) - 1));
  return std::llround(std::round(count / unit) * unit);
}

/// Values above the size of the whole model have the effect of that size.
SearchSetting sizes(const std::string& key, std::int64_t recorded, std::int64_t whole,
                    std::vector<std::int64_t> others) {
  SearchSetting setting{key, {{std::to_string(recorded)}}};
  std::ranges::sort(others);
  others.erase(std::unique(others.begin(), others.end()), others.end());
  for (const std::int64_t value : others) {
    if (value == recorded || (value >= whole && recorded >= whole)) continue;
    setting.values.push_back({std::to_string(value), {fmt::format("{}={}", key, value)}});
  }
  return setting;
}

SearchSetting on_off(const std::string& key, bool recorded) {
  const char* other = recorded ? "false" : "true";
  return {key, {{recorded ? "true" : "false"}, {other, {fmt::format("{}={}", key, other)}}}};
}

class Space {
 public:
  Space(const config::TrainingConfig& recorded, const RunTables& tables)
      : recorded_(recorded), tables_(tables) {
    const plan::ZeroConfig& zero = recorded.zero;
    const bool needs_stage_3 = zero.offload_param.device != plan::OffloadDevice::none ||
                               zero.offload_optimizer.device == plan::OffloadDevice::nvme ||
                               zero.hpz_partition_size > 1 || zero.quantized_weights ||
                               zero.quantized_gradients || zero.mics_shard_size > 0;
    SearchSetting stage{std::string(kZero) + "stage", {{std::to_string(zero.stage)}}};
    stages_.push_back(zero.stage);
    for (std::uint32_t other = 0; other <= 3 && !needs_stage_3 && !zero.zenflow; ++other) {
      if (other == zero.stage) continue;
      if (other == 0 && zero.offload_optimizer.device != plan::OffloadDevice::none) continue;
      stage.values.push_back({std::to_string(other), {fmt::format("{}stage={}", kZero, other)}});
      stages_.push_back(other);
    }
    space_.push_back(std::move(stage));
  }

  /// Restricts the setting to stages from..to; omits it if none of them is tried.
  void add(SearchSetting setting, std::uint32_t from, std::uint32_t to) {
    for (std::size_t i = 0; i < stages_.size(); ++i)
      if (stages_[i] >= from && stages_[i] <= to) setting.only_with.push_back(i);
    if (setting.only_with.empty() || setting.values.size() < 2) return;
    if (setting.only_with.size() == stages_.size()) setting.only_with.clear();
    space_.push_back(std::move(setting));
  }

  void add_communication() {
    const plan::ZeroConfig& zero = recorded_.zero;
    SearchSetting overlap = on_off(std::string(kZero) + "overlap_comm", zero.overlap());
    overlap.held = fmt::format("{}overlap_comm={}", kZero, zero.overlap());
    add(std::move(overlap), 1, 3);
    add(sizes(std::string(kZero) + "reduce_bucket_size", zero.reduce_bucket_size, tables_.elems,
              {part(64), part(16), part(4), part(1)}),
        1, 3);
    add(sizes(std::string(kZero) + "stage3_prefetch_bucket_size", zero.prefetch_bucket_size, tables_.elems,
              {0, part(64), part(16), part(4)}),
        3, 3);
    add(sizes(std::string(kZero) + "stage3_max_live_parameters", zero.max_live_parameters, tables_.elems,
              {part(8), part(4), part(2), part(1)}),
        3, 3);
    add(sizes(std::string(kZero) + "stage3_max_reuse_distance", zero.max_reuse_distance, tables_.elems,
              {0, part(1)}),
        3, 3);
    std::int64_t vector = 0;
    for (const instrumentation::ParamInfo& param : tables_.params)
      if (param.shape.size() == 1) vector = std::max(vector, param.elems);
    // A parameter below the threshold is persistent: for the largest vector use its size plus one.
    add(sizes(std::string(kZero) + "stage3_param_persistence_threshold", zero.param_persistence_threshold,
              tables_.elems, {0, vector + 1}),
        3, 3);
  }

  void add_batch() {
    constexpr const char* kKey = "shardscope.activation_checkpointing";
    add(on_off(kKey, recorded_.shardscope.activation_checkpointing), 0, 3);
    if (recorded_.shardscope.micro_batches.packing != plan::Packing::fixed || recorded_.zero.zenflow) return;
    const std::int64_t micro = recorded_.batch.micro_batch_size;
    const std::int64_t together = micro * recorded_.batch.accumulation_steps;
    const auto text = [&](std::int64_t size) { return fmt::format("{} x {}", size, together / size); };
    SearchSetting batch{"micro-batch x accumulation", {{text(micro)}}};
    for (std::int64_t size = 1; size <= together; size *= 2) {
      if (size == micro || together % size != 0) continue;
      batch.values.push_back({text(size),
                              {fmt::format("train_micro_batch_size_per_gpu={}", size),
                               fmt::format("gradient_accumulation_steps={}", together / size)}});
    }
    add(std::move(batch), 0, 3);
  }

  void add_offloading() {
    const plan::OffloadDevice device = recorded_.zero.offload_optimizer.device;
    if (device == plan::OffloadDevice::nvme || recorded_.zero.zenflow) return;
    const std::string key = std::string(kZero) + "offload_optimizer.device";
    const bool on_cpu = device == plan::OffloadDevice::cpu;
    const char* other = on_cpu ? "none" : "cpu";
    add({key, {{on_cpu ? "cpu" : "none"}, {other, {fmt::format("{}={}", key, other)}}}}, 1, 3);
  }

  std::vector<SearchSetting> take() && { return std::move(space_); }

 private:
  [[nodiscard]] std::int64_t part(std::int64_t of) const {
    return of == 1 ? tables_.elems : two_digits(static_cast<double>(tables_.elems) / static_cast<double>(of));
  }

  const config::TrainingConfig& recorded_;
  const RunTables& tables_;
  std::vector<std::uint32_t> stages_;
  std::vector<SearchSetting> space_;
};

}  // namespace

std::vector<SearchSetting> usual_space(const config::TrainingConfig& recorded, const RunTables& tables,
                                       HostKnown host) {
  Space space(recorded, tables);
  space.add_communication();
  space.add_batch();
  if (host == HostKnown::yes) space.add_offloading();
  return std::move(space).take();
}

void leave_out(std::vector<SearchSetting>& space, const std::vector<std::string>& keys) {
  const auto is_given = [&](const SearchSetting& setting) {
    return std::ranges::any_of(setting.values, [&](const SettingValue& value) {
      return std::ranges::any_of(value.sets, [&](const std::string& set) {
        return std::ranges::find(keys, set.substr(0, set.find('='))) != keys.end();
      });
    });
  };
  for (std::size_t i = space.size(); i-- > 0;) {
    if (!is_given(space[i])) continue;
    if (i == 0) {
      space[i].values.resize(1);
      const auto without_effect = [](const SearchSetting& setting) {
        return !setting.only_with.empty() &&
               std::ranges::find(setting.only_with, 0U) == setting.only_with.end();
      };
      std::erase_if(space, without_effect);
    } else {
      space.erase(space.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

std::string unmeasured_of(const RunTables& tables) {
  // Of a simulated run the predictions are those of the simulator itself.
  if (tables.simulated) return {};
  constexpr std::uint32_t kMeasuredRanks = 2;
  const bool gpu =
      tables.device.find("CUDA") != std::string::npos || tables.device.find("cuda") != std::string::npos;
  std::string text = gpu ? "on GPUs" : "";
  if (tables.world > kMeasuredRanks)
    text += fmt::format("{}with {} ranks", text.empty() ? "" : " ", tables.world);
  return text;
}

SearchSetting setting_from(const std::string& text, const std::string& recorded) {
  const auto wrong = [&](const std::string& what) {
    return std::invalid_argument(fmt::format("{}: {}", text, what));
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw wrong("not KEY=V1,V2; write for example zero_optimization.stage=1,2,3");
  SearchSetting setting{text.substr(0, equals), {{recorded}}};
  if (recorded != "null") setting.held = fmt::format("{}={}", setting.name, recorded);
  std::vector<std::string> values(1);
  int depth = 0;
  bool quoted = false, escaped = false;
  for (const char c : text.substr(equals + 1)) {
    if (quoted) {
      quoted = c != '"' || escaped;
      escaped = c == '\\' && !escaped;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  for (const std::string& value : values) {
    if (value.empty()) throw wrong("a value is empty; give values parted by commas");
    if (value == recorded) continue;
    if (std::ranges::any_of(setting.values, [&](const SettingValue& known) { return known.text == value; }))
      throw wrong(fmt::format("{} twice; give each value once", value));
    setting.values.push_back({value, {fmt::format("{}={}", setting.name, value)}});
  }
  if (setting.values.size() < 2) throw wrong("is the recorded value alone; give others to try");
  return setting;
}

}  // namespace shardscope::analysis
