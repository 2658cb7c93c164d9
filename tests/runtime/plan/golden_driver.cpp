#include "tests/runtime/plan/golden_driver.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/plan/partition.h"

namespace shardscope::golden {

using plan::Direction;
using plan::ModuleId;
using plan::ParamId;
using plan::raw;

namespace {

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

plan::FetchCounters make_counters(const plan::ModelPlan& model, std::uint32_t world) {
  std::vector<std::int64_t> elems, shard_elems;
  for (const plan::ParamPlan& param : model.params) {
    elems.push_back(param.elems);
    shard_elems.push_back(plan::partition_param(param.elems, world).shard_elems);
  }
  return {std::move(elems), std::move(shard_elems)};
}

}  // namespace

Json ids_of(const std::vector<ParamId>& ids) {
  std::set<std::uint32_t> sorted;
  for (const ParamId id : ids) sorted.insert(raw(id));
  return Json(sorted);
}

SchedulerDriver::SchedulerDriver(const plan::ModelPlan& model, std::uint32_t world, const Json& run)
    : model_(model),
      scheduler_(model, world, config_of(run.value("config", Json::object()))),
      driver_(scheduler_),
      counters_(make_counters(model, world)) {
  for (const Json& pair : run.value("register_external", Json::array())) {
    scheduler_.register_external(param_named(pair.at(1)), module_at(pair.at(0)));
  }
}

Json SchedulerDriver::iteration(const std::vector<plan::Visit>& visits, Step after) {
  Json result;
  result["available_at_start"] = with_status(plan::ParamStatus::available);
  const bool trains = after != Step::none;
  switch (driver_.begin_iteration(trains ? plan::ModelMode::training : plan::ModelMode::evaluation)) {
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

void SchedulerDriver::step(const plan::Visit& visit) {
  const plan::VisitDecision decision = driver_.take(visit);
  const bool backward =
      visit.kind == plan::VisitKind::pre_backward || visit.kind == plan::VisitKind::post_backward;
  const Direction direction = backward ? Direction::backward : Direction::forward;
  // What is read from outside or returned is no event of a module.
  const bool of_module = visit.kind == plan::VisitKind::pre_forward || backward;
  if (decision.fetch && of_module) fetched(*decision.fetch, visit.module, direction);
  if (decision.release) released(*decision.release, visit.module, direction);
}

void SchedulerDriver::fetched(const plan::FetchPlan& plan, ModuleId module, Direction direction) {
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

void SchedulerDriver::released(const plan::ReleasePlan& plan, ModuleId module, Direction direction) {
  Json event = {{"ev", "release"},
                {"module", raw(module)},
                {"dir", direction == Direction::forward ? "fwd" : "bwd"},
                {"n_available", plan.available_elems}};
  put(event, "ids", ids_of(plan.released));
  events_.push_back(std::move(event));
}

/// The end of the backward and the beginning of the step.
void SchedulerDriver::finish(Json& result) {
  if (const auto ids = scheduler_.release_leftovers(); !ids.empty()) released("release_leftovers", ids);
  result["n_available_before_step"] = scheduler_.available_elems();
  if (const auto ids = scheduler_.release_all(); !ids.empty()) released("release_all", ids);
}

void SchedulerDriver::released(const char* kind, const std::vector<ParamId>& ids) {
  events_.push_back({{"ev", kind}, {"ids", ids_of(ids)}, {"n_available", scheduler_.available_elems()}});
}

/// As DeepSpeed lists them: what was not counted is missing.
Json SchedulerDriver::counted() {
  const plan::FetchCounts counts = counters_.take();
  Json reported = Json::object();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].count == 0) continue;
    reported[plan::name_of(static_cast<plan::FetchCounter>(i))] = {counts[i].count, counts[i].elems};
  }
  return reported;
}

Json SchedulerDriver::with_status(plan::ParamStatus status) const {
  Json ids = Json::array();
  for (const plan::ParamPlan& param : model_.params) {
    if (scheduler_.status(param.id) == status) ids.push_back(raw(param.id));
  }
  return ids;
}

ModuleId SchedulerDriver::module_at(const std::string& path) const {
  for (const plan::ModulePlan& module : model_.modules) {
    if (module.path == path) return module.id;
  }
  throw std::invalid_argument("register_external: the model has no module \"" + path + "\"");
}

ParamId SchedulerDriver::param_named(const std::string& name) const {
  for (const plan::ParamPlan& param : model_.params) {
    if (param.name == name) return param.id;
  }
  throw std::invalid_argument("register_external: the model has no parameter \"" + name + "\"");
}

}  // namespace shardscope::golden
