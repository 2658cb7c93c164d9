// Checks of recorded DeepSpeed behaviour, one file per format. A check reads one golden file, drives our
// planners with its inputs, and compares what they decide with what was recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/plan/model_plan.h"

namespace shardscope::golden {

using Json = nlohmann::json;

/// What a check found: one line per case and a count of those that disagree.
class Report {
 public:
  void agree(const std::string& name, const std::string& what);
  void differ(const std::string& name, const std::string& where, const Json& expected, const Json& got);
  void fail(const std::string& name, const std::string& what);
  /// Something the reader should know that is no disagreement.
  void note(const std::string& text);

  [[nodiscard]] int agreed() const noexcept { return agreed_; }
  [[nodiscard]] int disagreed() const noexcept { return disagreed_; }
  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

 private:
  int agreed_ = 0;
  int disagreed_ = 0;
  std::vector<std::string> lines_;
};

/// The first place where two JSON values differ, as a path such as "/events/3/gather"; empty when equal.
/// Numbers compare by value.
[[nodiscard]] std::string first_difference(const Json& expected, const Json& got);
/// What `json` holds at a path of first_difference, or null.
[[nodiscard]] Json value_at(const Json& json, const std::string& path);
/// Reports agreement, or the first difference, of one part of a case. Returns whether they are equal.
bool compare(Report& report, const std::string& name, const Json& expected, const Json& got);

/// The list under `key`. Throws std::invalid_argument where it is missing or no list.
[[nodiscard]] const Json& list_at(const Json& holder, const char* key);
/// A number of ranks. Throws std::invalid_argument on one that no run could have had.
[[nodiscard]] std::uint32_t world_of(const Json& world);
/// What `holder` is called by `key`, or its place in the file where that is missing or no text.
[[nodiscard]] std::string label_of(const Json& holder, const char* key, const std::string& place);
/// Runs one case; what it throws becomes a failure of that case, and the others go on.
void guarded(Report& report, const std::string& name, const std::function<void()>& check);

void check_coordinator(const Json& file, Report& report);
void check_stage12(const Json& file, Report& report);
void check_loss_scale(const Json& file, Report& report);
void check_estimator(const Json& file, Report& report);

/// The model of a golden file: from its "tree" (docs/models.md) where it has one, otherwise rebuilt from its
/// list of modules and parameters, by the names that the legend explains (`inp`, `blk`, `wte`, `h`, ...);
/// there a parameter may have "trainable": false and a module "returns". Where the names do not explain what
/// each module computes, its modules and parameters as listed, without a tree. Throws std::invalid_argument
/// where these contradict each other.
[[nodiscard]] plan::ModelPlan model_of(const std::string& name, const Json& model);
/// Whether it is known what the modules of `model` compute, and so in which order they run.
[[nodiscard]] bool has_tree(const plan::ModelPlan& model);
/// The same with the leaf modules of a run's configuration.
[[nodiscard]] plan::ModelPlan model_of(const std::string& name, const Json& model, const Json& config);

/// A model that golden files mention by name only, from samples/models/NAME.json. Throws
/// std::invalid_argument when there is no such file.
[[nodiscard]] plan::ModelPlan golden_model(const std::string& name);

}  // namespace shardscope::golden
