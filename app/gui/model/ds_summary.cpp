#include "app/gui/model/ds_summary.h"

#include <algorithm>

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "instrumentation/event_fields.h"
#include "instrumentation/param_status.h"

namespace shardscope::gui {
namespace {

/// Modules that use the parameter and run at that time: DeepSpeed keeps a gathered parameter while there is
/// one.
std::string active_modules(const store::Store& store, const ev::ParamInfo& info, std::uint32_t rank,
                           std::int64_t at_ns) {
  const store::LaneId lane{rank, ev::StreamId::compute};
  std::string out;
  for (std::uint8_t depth = 0; depth < store.depth_count(lane); ++depth) {
    store.for_each_span(lane, depth, at_ns, at_ns + 1, [&](const store::Span& span) {
      if (span.kind != ev::EventKind::module_begin) return;
      const std::uint32_t module = ev::as<ev::EventKind::module_begin>(span).module;
      if (std::ranges::find(info.modules, module) == info.modules.end()) return;
      if (!out.empty()) out += ", ";
      out += module_name(store, module);
    });
  }
  return out.empty() ? "none" : out;
}

const char* deepspeed_word(plan::ParamStatus status) {
  switch (status) {
    case plan::ParamStatus::available:
      return "AVAILABLE";
    case plan::ParamStatus::in_flight:
      return "INFLIGHT";
    case plan::ParamStatus::not_available:
      return "NOT_AVAILABLE";
  }
  return "";
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
  add("status", known ? std::string(deepspeed_word(status)) : not_kept_text());
  add("numel", !known ? "—" : here ? grouped(info.elems) : "0");
  add("ds_numel", grouped(info.elems));
  add("shape", !known ? "—" : here ? shape_text(info.shape) : "[0]");
  add("ds_shape", shape_text(info.shape));
  add("requires_grad", info.frozen ? "False" : "True");
  add("persist", divided && info.persistent ? "True" : "False");
  add("active_sub_modules", known ? active_modules(store, info, rank, at_ns) : "—");
  if (divided) add("ds_tensor.shape", "[" + std::to_string(info.shard_elems) + "]");
  return out;
}

}  // namespace shardscope::gui
