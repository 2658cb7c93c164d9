// coordinator.json: its models, and what a scheduler decides in each recorded iteration, compared event by
// event.
#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "runtime/plan/bucket.h"
#include "runtime/plan/partition.h"
#include "tests/runtime/plan/golden.h"
#include "tests/runtime/plan/golden_driver.h"
#include "tests/runtime/plan/golden_visits.h"

namespace shardscope::golden {
namespace {

using plan::ParamId;
using plan::raw;

/// Whether the step of an iteration was skipped because its gradients overflowed, or it is an evaluation.
SchedulerDriver::Step step_of(const Json& run, std::size_t iteration) {
  const auto is = [&](const char* key) {
    const Json marks = run.value(key, Json::array());
    return iteration < marks.size() && marks[iteration].get<bool>();
  };
  if (is("evaluate_per_iteration")) return SchedulerDriver::Step::none;
  return is("overflow_per_iteration") ? SchedulerDriver::Step::skipped : SchedulerDriver::Step::applied;
}

/// An evaluation goes no further than its forward.
std::vector<plan::Visit> visited(std::vector<plan::Visit> order, SchedulerDriver::Step after) {
  if (after != SchedulerDriver::Step::none) return order;
  const auto backward = std::find_if(order.begin(), order.end(), [](const plan::Visit& visit) {
    return visit.kind == plan::VisitKind::pre_backward || visit.kind == plan::VisitKind::begin_recompute;
  });
  order.erase(backward, order.end());
  return order;
}

/// A run lists the worlds in which it was alike; one alone may stand by itself.
Json worlds_of(const Json& run) {
  const Json& world = run.at("world");
  return world.is_array() ? world : Json::array({world});
}

/// Keeps of `got` what the file records.
Json same_keys(const Json& expected, const Json& got) {
  Json kept = Json::object();
  for (const auto& [key, value] : expected.items()) {
    if (got.contains(key)) kept[key] = got[key];
  }
  return kept;
}

void check_model(const std::string& name, const Json& golden, const plan::ModelPlan& model, Report& report) {
  Json got_modules = Json::array();
  for (const plan::ModulePlan& module : model.modules) {
    Json params = Json::array();
    for (const ParamId id : module.params) {
      const std::string& full = model.params[raw(id)].name;
      params.push_back({{"name", full.substr(full.rfind('.') + 1)}, {"ds_id", raw(id)}});
    }
    got_modules.push_back({{"id", raw(module.id)},
                           {"name", module.path.empty() ? "(root)" : module.path},
                           {"type", module.type},
                           {"params", params}});
  }
  Json got_params = Json::array();
  for (const plan::ParamPlan& param : model.params) {
    got_params.push_back(
        {{"ds_id", raw(param.id)}, {"name", param.name}, {"shape", param.shape}, {"numel", param.elems}});
    if (!param.trainable) got_params.back()["trainable"] = false;
  }
  Json modules = golden.at("modules");
  for (Json& module : modules) {
    module.erase("checkpoint");  // how it runs, not what it is
    module.erase("returns");
  }
  bool same = compare(report, "model " + name + " modules", modules, got_modules);
  same &= compare(report, "model " + name + " params", golden.at("params"), got_params);
  if (golden.contains("total_numel")) {
    same &= compare(report, "model " + name + " total_numel", golden["total_numel"], model.elems);
  }
  const Json partitions = golden.value("partition", Json::object());
  for (const auto& [world, expected] : partitions.items()) {
    Json shards = Json::array();
    Json padding = Json::array();
    for (const plan::ParamPlan& param : model.params) {
      const auto part = plan::partition_param(param.elems, world_of(Json::parse(world)));
      shards.push_back(part.shard_elems);
      padding.push_back(part.padding_elems);
    }
    const Json got = {{"partition_numel", shards}, {"padding", padding}};
    same &= compare(report, "model " + name + " partition over " + world, same_keys(got, expected), got);
  }
  if (same) {
    const std::string listed = std::to_string(model.modules.size()) + " modules, " +
                               std::to_string(model.params.size()) + " params, ";
    report.agree("model " + name, (has_tree(model) ? listed : listed + "as listed, ") + "partitions");
  }
}

/// Keeps of a recording what the legend defines, so that remarks beside it are no disagreement. An empty list
/// is a missing one.
Json known_part(const Json& iteration) {
  static const std::set<std::string> kIteration{
      "mode", "available_at_start", "events", "n_available_before_step", "available_after_step", "counters"};
  static const std::set<std::string> kEvent{
      "ev",  "module",         "dir",     "n_available", "gather",          "wait",        "completed",
      "ids", "inflight_after", "step_id", "prefetch",    "expected_module", "recorded_len"};
  Json known = Json::object();
  for (const auto& [key, value] : iteration.items()) {
    if (kIteration.count(key) != 0) known[key] = value;
  }
  Json events = Json::array();
  for (Json event : list_at(iteration, "events")) {
    Json kept = Json::object();
    for (const auto& [key, value] : event.items()) {
      if (kEvent.count(key) != 0 && !(value.is_array() && value.empty())) kept[key] = value;
    }
    events.push_back(std::move(kept));
  }
  known["events"] = std::move(events);
  return known;
}

/// Leaves out of our events what the recording does not have at all ("recorded_len" of an older recorder).
Json as_recorded(const Json& expected, Json got) {
  if (!expected.contains("events") || !got.contains("events")) return got;
  const Json& wanted = expected["events"];
  for (std::size_t i = 0; i < std::min(wanted.size(), got["events"].size()); ++i) {
    Json& event = got["events"][i];
    for (const char* key : {"step_id", "recorded_len", "expected_module", "dir", "n_available"}) {
      if (!wanted[i].contains(key)) event.erase(key);
    }
  }
  return got;
}

/// Stage-3 gradient buckets: arrival order is input, where they are cut is ours.
bool check_reduce_flushes(const std::string& name, const plan::ModelPlan& model, const Json& config,
                          const Json& expected, Report& report) {
  plan::BucketPlanner::Config bucket;
  if (config.contains("reduce_bucket_size"))
    bucket.bucket_elems = config["reduce_bucket_size"].get<std::int64_t>();
  plan::BucketPlanner planner(bucket);
  Json got = Json::array();
  const auto add = [&got](const plan::Flush& flush) {
    Json ids = Json::array();
    for (const ParamId id : flush.params) ids.push_back(raw(id));
    got.push_back({{"ids_in_arrival_order", ids}, {"elements", flush.elems}});
  };
  if (!expected.is_array()) throw std::invalid_argument("reduce_flushes must be a list");
  for (const Json& flush : expected) {
    for (const Json& id : list_at(flush, "ids_in_arrival_order")) {
      const auto param = static_cast<ParamId>(id.get<std::uint32_t>());
      for (const plan::Flush& full : planner.add(param, model.params.at(raw(param)).elems)) add(full);
    }
  }
  if (const auto last = planner.finish()) add(*last);
  Json wanted = Json::array();
  for (const Json& flush : expected) {
    wanted.push_back(
        {{"ids_in_arrival_order", flush.at("ids_in_arrival_order")}, {"elements", flush.at("elements")}});
  }
  return compare(report, name + " reduce_flushes", wanted, got);
}

bool check_iteration(const std::string& name, const Json& recorded, const Json& got, Report& report) {
  const Json expected = known_part(recorded);
  return compare(report, name, expected, as_recorded(expected, same_keys(expected, got)));
}

void check_static(const std::string& name, const Json& trace, const plan::ModelPlan& model,
                  const plan::FetchScheduler& scheduler, bool& same, Report& report) {
  if (trace.contains("persisted")) {
    Json persistent = Json::array();
    for (const plan::ParamPlan& param : model.params) {
      if (scheduler.persistent(param.id)) persistent.push_back(raw(param.id));
    }
    same &= compare(report, name + " persisted", trace["persisted"], persistent);
  }
  if (trace.contains("external_params")) {
    Json external = Json::object();
    for (const plan::ModulePlan& module : model.modules) {
      std::vector<ParamId> added;
      for (const ParamId id : scheduler.params_of(module.id)) {
        if (std::find(module.params.begin(), module.params.end(), id) == module.params.end())
          added.push_back(id);
      }
      if (!added.empty()) external[std::to_string(raw(module.id))] = ids_of(added);
    }
    same &= compare(report, name + " external_params", trace["external_params"], external);
  }
}

constexpr const char* kFollowed = "; modules visited as recorded";  ///< see visits_of()

void check_trace(const Json& trace, const Json& definition, const plan::ModelPlan& model, Report& report) {
  const std::string name = trace.at("id").get<std::string>() + " " + model.spec.name;
  const Json config = trace.value("config", Json::object());
  bool same = true;
  bool as_recorded = false;
  std::size_t events = 0;
  for (const Json& world : worlds_of(trace)) {
    const std::string here = name + " world " + world.dump();
    SchedulerDriver driver(model, world_of(world), trace);
    Json second;
    for (std::size_t i = 0; i < 4 && same; ++i) {
      const Json& recorded = trace.at(i == 0 ? "record" : "complete").at("events");
      const Json& other = trace.at(i == 0 ? "complete" : "record").at("events");
      const Visits visits = visits_of(model, definition, trace, i, recorded, &other);
      as_recorded |= visits.as_recorded;
      const Json got = driver.iteration(visits.order);
      if (i == 0) same &= check_iteration(here + " record", trace.at("record"), got, report);
      if (i == 1) {
        same &= check_iteration(here + " complete", trace.at("complete"), got, report);
        second = got;
      }
      const char* repeats = i == 2 ? "second_complete_identical" : "third_complete_identical_to_second";
      if (i >= 2 && trace.value(repeats, false)) same &= compare(report, here + " " + repeats, second, got);
      events += got.at("events").size();
    }
    check_static(here, trace, model, driver.scheduler(), same, report);
  }
  for (const char* phase : {"record", "complete"}) {
    if (!trace.at(phase).contains("reduce_flushes")) continue;
    same &=
        check_reduce_flushes(name + " " + phase, model, config, trace.at(phase)["reduce_flushes"], report);
  }
  if (same) {
    report.agree(name, std::to_string(events) + " events in 4 iterations per world, reduce flushes" +
                           (as_recorded ? kFollowed : ""));
  }
}

void check_invalidation(const Json& run, const Json& definition, const plan::ModelPlan& model,
                        Report& report) {
  const std::string name = run.at("id").get<std::string>() + " " + model.spec.name;
  bool same = true;
  bool as_recorded = false;
  std::size_t events = 0;
  for (const Json& world : worlds_of(run)) {
    const std::string here = name + " world " + world.dump();
    SchedulerDriver driver(model, world_of(world), run);
    Json modes = Json::array();
    const Json& iterations = list_at(run, "iterations");
    for (std::size_t i = 0; i < iterations.size() && same; ++i) {
      const Visits visits = visits_of(model, definition, run, i, iterations[i].at("events"));
      as_recorded |= visits.as_recorded;
      const SchedulerDriver::Step after = step_of(run, i);
      const Json got = driver.iteration(visited(visits.order, after), after);
      same &= check_iteration(here + " iteration " + std::to_string(i), iterations[i], got, report);
      modes.push_back(got.at("mode"));
      events += got.at("events").size();
    }
    if (same && run.contains("mode_after_reset_per_iteration")) {
      same &= compare(report, here + " modes", run["mode_after_reset_per_iteration"], modes);
    }
    check_static(here, run, model, driver.scheduler(), same, report);
  }
  if (same) {
    report.agree(
        name, std::to_string(events) + " events, modes of every iteration" + (as_recorded ? kFollowed : ""));
  }
}

void check_run(const Json& run, const Json& definitions, const std::map<std::string, plan::ModelPlan>& models,
               Report& report) {
  const auto name = run.at("model").get<std::string>();
  const auto model = models.find(name);
  if (model == models.end()) throw std::invalid_argument("its model \"" + name + "\" could not be built");
  const Json& definition = definitions.at(name);
  const auto check = run.contains("iterations") ? check_invalidation : check_trace;
  const Json config = run.value("config", Json::object());
  if (config.contains("leaf_module") || config.contains("stage3_module_granularity_threshold")) {
    check(run, definition, model_of(name, definition, config), report);
  } else {
    check(run, definition, model->second, report);
  }
}

}  // namespace

void check_coordinator(const Json& file, Report& report) {
  std::map<std::string, plan::ModelPlan> models;
  for (const auto& [name, golden] : file.at("models").items()) {
    try {
      models.emplace(name, model_of(name, golden));
      check_model(name, golden, models.at(name), report);
    } catch (const std::exception& error) {
      report.fail("model " + name, error.what());
    }
  }
  bool any = false;
  for (const char* section : {"traces", "invalidation"}) {
    if (!file.contains(section)) continue;
    std::size_t number = 0;
    any = any || !list_at(file, section).empty();
    for (const Json& run : list_at(file, section)) {
      const std::string place = std::string(section) + " " + std::to_string(number++);
      guarded(report, label_of(run, "id", place), [&] { check_run(run, file.at("models"), models, report); });
    }
  }
  if (!any) report.fail("file", "no run in \"traces\" or \"invalidation\": nothing was compared");
}

}  // namespace shardscope::golden
