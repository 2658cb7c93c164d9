#include "app/gui/model/ds_summary.h"

#include <algorithm>

#include "app/analysis/shard_places.h"
#include "app/analysis/spans.h"
#include "app/analysis/zero_settings.h"
#include "app/gui/model/details.h"
#include "app/gui/model/format.h"
#include "app/gui/model/gradient_states.h"
#include "app/gui/model/names.h"
#include "app/gui/model/step_of.h"
#include "app/store/vocabulary.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/param_status.h"
#include "runtime/plan/deepspeed_words.h"

namespace shardscope::gui {
namespace {

/// Running modules that use the parameter: DeepSpeed keeps a gathered parameter while there is
/// one.
std::string active_modules(const store::Store& store, const ev::ParamInfo& info, std::uint32_t rank,
                           std::int64_t at_ns) {
  const store::LaneId lane{rank, ev::StreamId::compute};
  std::string out;
  analysis::for_each_span(store, lane, at_ns, at_ns + 1, [&](const store::Span& span) {
    if (span.kind != ev::EventKind::module_begin) return;
    const std::uint32_t module = ev::as<ev::EventKind::module_begin>(span).module;
    if (std::ranges::find(info.modules, module) == info.modules.end()) return;
    if (!out.empty()) out += ", ";
    out += module_name(store, module);
  });
  return out.empty() ? "none" : out;
}

[[nodiscard]] bool has_ds_summary(const ev::RunTables& tables) {
  const store::Framework framework = store::framework_of(tables);
  return framework == store::Framework::zero || framework == store::Framework::deepspeed;
}

std::string status_word(const ev::RunTables& tables, plan::ParamStatus status) {
  const store::Vocabulary& words = store::vocabulary_of(tables);
  switch (status) {
    case plan::ParamStatus::available:
      return words.fetched;
    case plan::ParamStatus::in_flight:
      return std::string(words.gather) + " in flight";
    case plan::ParamStatus::not_available:
      return words.released;
  }
  return "";
}

/// `param.grad` exists from the backward of a module that uses the parameter: up to the reduction if ranks
/// keep only their partition, else to the end of the step.
bool has_gradient(const store::Store& store, const ev::ParamInfo& info, std::uint32_t rank,
                  std::int64_t at_ns) {
  const auto step = step_of(store.steps(), at_ns);
  if (info.frozen || !step || store.steps()[*step].end_ns <= at_ns) return false;
  const GradientStatus status = gradient_states(store, rank, at_ns)[info.id].status;
  if (status == GradientStatus::reduced) {
    // DeepSpeed's stage 1 also clears gradients at the end of the backward.
    const plan::ZeroConfig zero = analysis::zero_of(store.tables());
    const bool as_deepspeed = plan::holds_gradient_buffers(zero) || !store.tables().framework.empty();
    return zero.stage == 0 || (zero.stage == 1 && !as_deepspeed);
  }
  return status != GradientStatus::none;
}

}  // namespace

std::vector<Field> ds_summary(const store::Store& store, std::uint32_t param, std::uint32_t rank,
                              std::int64_t at_ns) {
  std::vector<Field> out;
  if (!store.has_tables() || param >= store.tables().params.size()) return out;
  const ev::RunTables& tables = store.tables();
  const ev::ParamInfo& info = tables.params[param];
  const bool divided = tables.stage == 3;
  const auto status =
      divided ? static_cast<plan::ParamStatus>(ev::status_of(store.param_state(rank, param, at_ns).status))
              : plan::ParamStatus::available;
  const bool known = !divided || store.is_known(rank, at_ns);
  const bool here = status == plan::ParamStatus::available;
  const auto add = [&](const char* label, std::string value) {
    out.push_back({label, std::move(value), "", ""});
  };
  add("id", std::to_string(info.id));
  add("status", known ? std::string(plan::deepspeed_word(status)) : not_kept_text());
  add("numel", !known ? "—" : here ? grouped(info.elems) : "0");
  add("ds_numel", grouped(info.elems));
  add("shape", !known ? "—" : here ? shape_text(info.shape) : "[0]");
  add("ds_shape", shape_text(info.shape));
  add("requires_grad", info.frozen ? "False" : "True");
  const bool seen = store.is_known(rank, at_ns);
  add("grad_shape", !seen ? "—" : has_gradient(store, info, rank, at_ns) ? shape_text(info.shape) : "None");
  add("persist", divided && info.persistent ? "True" : "False");
  add("active_sub_modules", known ? active_modules(store, info, rank, at_ns) : "—");
  if (divided) add("ds_tensor.shape", "[" + std::to_string(info.shard_elems) + "]");
  // ds_param_type REMOTE (held by one rank for the others) does not occur, in DeepSpeed either.
  add("ds_param_type", divided ? "PARTITIONED" : "NORMAL");
  if (const auto place = analysis::shard_location(tables, param)) {
    add("final_location", place->place == plan::ShardPlace::nvme ? "nvme" : "None");
    add("shard location", text_of(*place));
  }
  return out;
}

std::vector<Field> param_summary(const store::Store& store, std::uint32_t param, std::uint32_t rank,
                                 std::int64_t at_ns) {
  if (!store.has_tables() || param >= store.tables().params.size()) return {};
  const ev::RunTables& tables = store.tables();
  if (has_ds_summary(tables)) return ds_summary(store, param, rank, at_ns);
  const ev::ParamInfo& info = tables.params[param];
  std::vector<Field> out;
  const auto add = [&](const char* label, std::string value) {
    out.push_back({label, std::move(value), "", ""});
  };
  const bool divided = tables.stage == 3, seen = store.is_known(rank, at_ns);
  add("id", std::to_string(info.id));
  if (!divided)
    add("status", "whole on every rank");
  else
    add("status", !seen ? not_kept_text()
                        : status_word(tables, static_cast<plan::ParamStatus>(ev::status_of(
                                                  store.param_state(rank, param, at_ns).status))));
  add("elements", grouped(info.elems));
  add("shape", shape_text(info.shape));
  if (info.shard_elems > 0) add("shard", grouped(info.shard_elems) + " elements, with padding");
  add("requires_grad", info.frozen ? "False" : "True");
  add("gradient", !seen ? "—" : has_gradient(store, info, rank, at_ns) ? shape_text(info.shape) : "None");
  add("running modules", seen ? active_modules(store, info, rank, at_ns) : "—");
  return out;
}

std::string param_summary_heading(const store::Store& store, std::uint32_t param) {
  const bool deepspeed = store.has_tables() && has_ds_summary(store.tables());
  return (deepspeed ? "ds_summary of " : "State of ") + param_name(store, param);
}

}  // namespace shardscope::gui
