// Tables of the run: one row per step, rank, parameter, module, slice, message, gap or sample of a counter.
#include <limits>
#include <map>

#include "app/analysis/counters.h"
#include "app/arrow/table_definition.h"
#include "app/store/gap_text.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"
#include "app/store/step_values.h"

namespace shardscope::arrow {
namespace {

namespace ev = shardscope::instrumentation;
using store::Store;

void write_steps(const Store& store, const store::RecordingInfo&, Batch& batch) {
  for (const store::StepRow& row : store.steps()) {
    batch.id(row.step).time(row.begin_ns).time(row.end_ns).integer(row.paused_ns).integer(row.tokens);
    store::for_each_step_column([&](const store::StepValue& value) { batch.number(row.*value.member); },
                                [&] { batch.flag(row.skipped); });
    batch.end_row();
  }
}
Schema step_schema() {
  Schema schema = {{"step", kId},
                   {"begin_ns", kInteger},
                   {"end_ns", kInteger},
                   {"paused_ns", kInteger},
                   {"tokens", kInteger}};
  store::for_each_step_column(
      [&](const store::StepValue& value) {
        schema.push_back({value.name(), kNumber});
      },
      [&] {
        schema.push_back({"skipped", kFlag});
      });
  return schema;
}

void write_ranks(const Store& store, const store::RecordingInfo&, Batch& batch) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  for (const store::RankRow& row : store.ranks()) {
    batch.id(row.rank).text(row.host).integer(row.pid).flag(row.finished).integer(row.exit_code);
    batch.integer(static_cast<std::int64_t>(row.events)).integer(static_cast<std::int64_t>(row.dropped));
    batch.integer(static_cast<std::int64_t>(row.lost_messages)).integer(row.clock_offset_ns);
    batch.integer(row.largest_clock_residual_ns).number(row.clock_drift ? row.clock_drift->ppb : kMissing);
    batch.integer(row.last_ns).text(store::text_of(store::rank_end(store, row))).end_row();
  }
}
Schema rank_schema() {
  return {{"rank", kId},
          {"host", kText},
          {"pid", kInteger},
          {"finished", kFlag},
          {"exit_code", kInteger},
          {"events", kInteger},
          {"dropped", kInteger},
          {"lost_messages", kInteger},
          {"clock_offset_ns", kInteger},
          {"clock_residual_ns", kInteger},
          {"clock_drift_ppb", kNumber},
          {"last_event_ns", kInteger},
          {"state", kText}};
}

void write_parameters(const Store& store, const store::RecordingInfo&, Batch& batch) {
  if (!store.has_tables()) return;
  const auto& modules = store.tables().modules;
  std::map<std::uint32_t, const ev::ModuleInfo*> owner;  // the first module that uses it
  for (const ev::ModuleInfo& of : modules) {
    for (const std::uint32_t param : of.params) owner.emplace(param, &of);
  }
  for (const ev::ParamInfo& row : store.tables().params) {
    std::string shape;
    for (const std::int64_t dim : row.shape) shape += (shape.empty() ? "" : "x") + std::to_string(dim);
    const auto of = owner.find(row.id);
    batch.id(row.id).text(row.name).text(row.dtype).text(shape).integer(row.elems).integer(row.shard_elems);
    batch.integer(row.padding_elems).flag(row.persistent).flag(row.frozen);
    batch.id(of == owner.end() ? ev::kNoId : of->second->id).end_row();
  }
}
Schema parameter_schema() {
  return {{"param", kId},
          {"name", kText},
          {"dtype", kText},
          {"shape", kText},
          {"elems", kInteger},
          {"shard_elems", kInteger},
          {"padding_elems", kInteger},
          {"persistent", kFlag},
          {"frozen", kFlag},
          {"module", kId}};
}

void write_modules(const Store& store, const store::RecordingInfo&, Batch& batch) {
  if (!store.has_tables()) return;
  for (const ev::ModuleInfo& row : store.tables().modules)
    batch.id(row.id).id(row.parent).text(row.path).text(row.type).end_row();
}
Schema module_schema() { return {{"module", kId}, {"parent", kId}, {"path", kText}, {"type", kText}}; }

void write_slices(const Store& store, const store::RecordingInfo&, Batch& batch) {
  if (!store.has_tables()) return;
  for (const ev::SliceInfo& row : store.tables().slices) {
    batch.id(row.param).id(row.rank).integer(row.param_offset).integer(row.shard_offset);
    batch.integer(row.elems).integer(row.padding_elems);
    batch.integer(row.block_elems).integer(row.stride_elems).end_row();
  }
}
Schema slice_schema() {
  return {{"param", kId},
          {"rank", kId},
          {"param_offset", kInteger},
          {"shard_offset", kInteger},
          {"elems", kInteger},
          {"padding_elems", kInteger},
          {"block_elems", kInteger},
          {"stride_elems", kInteger}};
}

void write_messages(const Store& store, const store::RecordingInfo&, Batch& batch) {
  for (const store::Message& row : store.messages())
    batch.integer(row.at_ns).id(row.rank).text(store::name_of(row.severity)).text(row.text).end_row();
}
Schema message_schema() { return {{"at_ns", kInteger}, {"rank", kId}, {"severity", kText}, {"text", kText}}; }

void write_gaps(const Store& store, const store::RecordingInfo&, Batch& batch) {
  for (const store::Gap& row : store.gaps()) {
    batch.id(row.rank).integer(row.begin_ns).integer(row.end_ns);
    if (row.events > 0) {
      batch.integer(static_cast<std::int64_t>(row.events));
    } else {
      batch.null();  // number unknown
    }
    batch.integer(static_cast<std::int64_t>(row.messages)).text(store::what_is_missing(row)).end_row();
  }
}
Schema gap_schema() {
  return {{"rank", kId},        {"begin_ns", kInteger}, {"end_ns", kInteger},
          {"events", kInteger}, {"messages", kInteger}, {"reason", kText}};
}

void write_counters(const Store& store, const store::RecordingInfo&, Batch& batch) {
  for (const store::RankRow& rank : store.ranks()) {
    const analysis::CounterLog counters =
        analysis::counters_of(store, rank.rank, store::Store::kBegin, store::Store::kEnd);
    for (const analysis::CounterSeries& series : counters.series()) {
      for (const analysis::CounterSample& sample : series.samples) {
        batch.id(rank.rank).text(series.name).text(series.unit).time(sample.at_ns);
        if (sample.until_ns == analysis::CounterSample::kUntilNext) {
          batch.null();
        } else {
          batch.time(sample.until_ns);
        }
        batch.number(sample.value).flag(series.own).end_row();
      }
    }
  }
}
Schema counter_schema() {
  return {{"rank", kId},        {"name", kText},    {"unit", kText},          {"begin_ns", kInteger},
          {"end_ns", kInteger}, {"value", kNumber}, {"of_the_program", kFlag}};
}

constexpr std::array kRunTables = {
    TableDefinition{"steps", step_schema, write_steps},
    TableDefinition{"ranks", rank_schema, write_ranks},
    TableDefinition{"parameters", parameter_schema, write_parameters},
    TableDefinition{"modules", module_schema, write_modules},
    TableDefinition{"slices", slice_schema, write_slices},
    TableDefinition{"messages", message_schema, write_messages},
    TableDefinition{"gaps", gap_schema, write_gaps},
    TableDefinition{"counters", counter_schema, write_counters},
};

}  // namespace

std::span<const TableDefinition> run_tables() { return kRunTables; }

}  // namespace shardscope::arrow
