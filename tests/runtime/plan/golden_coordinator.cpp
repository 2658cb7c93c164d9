// coordinator.json: fetch, gather, wait, prefetch and release of ZeRO-3, event by event.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "runtime/plan/bucket.h"
#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/forward_stack.h"
#include "runtime/plan/partition.h"
#include "runtime/plan/scheduler.h"
#include "tests/runtime/plan/golden.h"
#include "tests/runtime/plan/golden_visits.h"

namespace shardscope::golden {
namespace {

using plan::Direction;
using plan::ModuleId;
using plan::ParamId;
using plan::raw;

Json ids_of(const std::vector<ParamId>& ids) {
  std::set<std::uint32_t> sorted;
  for (const ParamId id : ids) sorted.insert(raw(id));
  return Json(sorted);
}

/// The legend: a missing list means an empty list.
void put(Json& event, const char* key, const Json& list) {
  if (!list.empty()) event[key] = list;
}

plan::SchedulerConfig config_of(const Json& config) {
  plan::SchedulerConfig settings;
  settings.compat = plan::Compat::deepspeed;
  const auto take = [&config](const char* key, std::int64_t& value) {
    if (!config.contains(key)) return;
    // 1e9 style values are doubles; sys.maxsize may be written as a number beyond int64.
    const Json& given = config.at(key);
    value = given.is_number_float() ? static_cast<std::int64_t>(std::min(given.get<double>(), 9.0e18))
                                    : given.get<std::int64_t>();
  };
  take("stage3_prefetch_bucket_size", settings.prefetch_bucket_elems);
  take("stage3_max_live_parameters", settings.max_live_elems);
  take("stage3_max_reuse_distance", settings.max_reuse_distance_elems);
  take("stage3_param_persistence_threshold", settings.param_persistence_elems);
  take("stage3_model_persistence_threshold", settings.model_persistence_elems);
  if (config.value("stage3_allgather_sequential", false)) settings.prefetch_bucket_elems = 1;
  return settings;
}

/// Drives a scheduler through iterations and writes down what it decides, in the file's own terms.
class Driver {
 public:
  Driver(const plan::ModelPlan& model, std::uint32_t world, const Json& run)
      : model_(model),
        scheduler_(model, world, config_of(run.value("config", Json::object()))),
        counters_(make_counters(model, world)) {
    for (const Json& pair : run.value("register_external", Json::array())) {
      scheduler_.register_external(param_named(pair.at(1)), module_at(pair.at(0)));
    }
  }

  [[nodiscard]] const plan::FetchScheduler& scheduler() const noexcept { return scheduler_; }

  /// What follows the forward: backward and step, a step that is skipped, or nothing in an evaluation.
  enum class Step { applied, skipped, none };

  Json iteration(const std::vector<plan::Visit>& visits, Step after = Step::applied) {
    Json result;
    result["available_at_start"] = with_status(plan::ParamStatus::available);
    const bool trains = after != Step::none;
    switch (scheduler_.begin_iteration(trains ? plan::ModelMode::training : plan::ModelMode::evaluation)) {
      case plan::TraceMode::record:
        result["mode"] = "RECORD";
        break;
      case plan::TraceMode::complete:
        result["mode"] = "COMPLETE";
        break;
      case plan::TraceMode::invalid:
        result["mode"] = "INVALID";
        break;
    }
    events_ = Json::array();
    for (const plan::Visit& visit : visits) step(visit);
    if (trains) finish(result);
    // DeepSpeed leaves a step that overflowed before it gathers them.
    if (after == Step::applied) (void)scheduler_.gather_persistent();
    result["available_after_step"] = with_status(plan::ParamStatus::available);
    result["events"] = std::move(events_);
    result["counters"] = counted();
    return result;
  }

 private:
  /// The end of the backward and the beginning of the step.
  void finish(Json& result) {
    if (const auto ids = scheduler_.release_leftovers(); !ids.empty()) released("release_leftovers", ids);
    result["n_available_before_step"] = scheduler_.available_elems();
    if (const auto ids = scheduler_.release_all(); !ids.empty()) released("release_all", ids);
  }

  [[nodiscard]] ModuleId module_at(const std::string& path) const {
    for (const plan::ModulePlan& module : model_.modules) {
      if (module.path == path) return module.id;
    }
    throw std::invalid_argument("register_external: the model has no module \"" + path + "\"");
  }

  [[nodiscard]] ParamId param_named(const std::string& name) const {
    for (const plan::ParamPlan& param : model_.params) {
      if (param.name == name) return param.id;
    }
    throw std::invalid_argument("register_external: the model has no parameter \"" + name + "\"");
  }

  static plan::FetchCounters make_counters(const plan::ModelPlan& model, std::uint32_t world) {
    std::vector<std::int64_t> elems, shard_elems;
    for (const plan::ParamPlan& param : model.params) {
      elems.push_back(param.elems);
      shard_elems.push_back(plan::partition_param(param.elems, world).shard_elems);
    }
    return {std::move(elems), std::move(shard_elems)};
  }

  /// As DeepSpeed lists them: what was not counted is missing.
  Json counted() {
    const plan::FetchCounts counts = counters_.take();
    Json reported = Json::object();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i].count == 0) continue;
      reported[plan::name_of(static_cast<plan::FetchCounter>(i))] = {counts[i].count, counts[i].elems};
    }
    return reported;
  }

  Json with_status(plan::ParamStatus status) const {
    Json ids = Json::array();
    for (const plan::ParamPlan& param : model_.params) {
      if (scheduler_.status(param.id) == status) ids.push_back(raw(param.id));
    }
    return ids;
  }

  void released(const char* kind, const std::vector<ParamId>& ids) {
    events_.push_back({{"ev", kind}, {"ids", ids_of(ids)}, {"n_available", scheduler_.available_elems()}});
  }

  void step(const plan::Visit& visit) {
    switch (visit.kind) {
      case plan::VisitKind::pre_forward:
        stack_.enter(visit.module);
        fetch(visit.module, Direction::forward);
        break;
      case plan::VisitKind::return_param:
        (void)scheduler_.return_param(visit.param, visit.module, stack_.around());
        break;
      case plan::VisitKind::post_forward:
        stack_.leave();
        release(visit.module, Direction::forward);
        break;
      case plan::VisitKind::pre_backward:
        fetch(visit.module, Direction::backward);
        break;
      case plan::VisitKind::post_backward:
        release(visit.module, Direction::backward);
        break;
      case plan::VisitKind::use_external:
        (void)scheduler_.fetch_external(visit.param, visit.module);
        break;
      case plan::VisitKind::begin_recompute:
      case plan::VisitKind::end_recompute:
        recomputes_ = visit.kind == plan::VisitKind::begin_recompute;
        break;
    }
  }

  void fetch(ModuleId module, Direction direction) {
    const plan::FetchPlan plan =
        recomputes_ ? scheduler_.fetch_recomputed(module) : scheduler_.fetch(module, direction);
    counters_.fetched(plan, direction, [](ParamId) { return false; });
    if (plan.invalidated) {
      const plan::Invalidation& gone = *plan.invalidated;
      // Nothing is gathered between the two, so the counter then is the counter after less this gather.
      Json event = {{"ev", "invalidate"},
                    {"step_id", gone.trace_step},
                    {"recorded_len", gone.recorded},
                    {"n_available", plan.available_elems - plan.gather.elems}};
      event["expected_module"] =
          gone.expected == plan::kNone<ModuleId> ? Json(nullptr) : Json(raw(gone.expected));
      put(event, "ids", ids_of(gone.released));
      events_.push_back(std::move(event));
    }
    Json event = {{"ev", "fetch"},
                  {"module", raw(module)},
                  {"dir", direction == Direction::forward ? "fwd" : "bwd"},
                  {"n_available", plan.available_elems}};
    put(event, "gather", ids_of(plan.gather.params));
    put(event, "wait", ids_of(plan.wait));
    put(event, "completed", ids_of(plan.completed));
    put(event, "prefetch", ids_of(plan.prefetch.params));
    put(event, "inflight_after", with_status(plan::ParamStatus::in_flight));
    events_.push_back(std::move(event));
  }

  void release(ModuleId module, Direction direction) {
    const plan::ReleasePlan plan =
        recomputes_ ? scheduler_.release_recomputed(module) : scheduler_.release(module, direction);
    Json event = {{"ev", "release"},
                  {"module", raw(module)},
                  {"dir", direction == Direction::forward ? "fwd" : "bwd"},
                  {"n_available", plan.available_elems}};
    put(event, "ids", ids_of(plan.released));
    events_.push_back(std::move(event));
  }

  const plan::ModelPlan& model_;
  plan::FetchScheduler scheduler_;
  plan::ForwardStack stack_;
  plan::FetchCounters counters_;
  Json events_;
  bool recomputes_ = false;
};

/// Whether the step of an iteration was skipped because its gradients overflowed, or it is an evaluation.
Driver::Step step_of(const Json& run, std::size_t iteration) {
  const auto is = [&](const char* key) {
    const Json marks = run.value(key, Json::array());
    return iteration < marks.size() && marks[iteration].get<bool>();
  };
  if (is("evaluate_per_iteration")) return Driver::Step::none;
  return is("overflow_per_iteration") ? Driver::Step::skipped : Driver::Step::applied;
}

/// An evaluation goes no further than its forward.
std::vector<plan::Visit> visited(std::vector<plan::Visit> order, Driver::Step after) {
  if (after != Driver::Step::none) return order;
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
    Driver driver(model, world_of(world), trace);
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
    Driver driver(model, world_of(world), run);
    Json modes = Json::array();
    const Json& iterations = list_at(run, "iterations");
    for (std::size_t i = 0; i < iterations.size() && same; ++i) {
      const Visits visits = visits_of(model, definition, run, i, iterations[i].at("events"));
      as_recorded |= visits.as_recorded;
      const Driver::Step after = step_of(run, i);
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
