// Tables that a store has in memory: one row for each of its entries.
#include <map>

#include "app/arrow/whole_table.h"
#include "app/store/gap_text.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"
#include "app/store/step_values.h"

namespace shardscope::arrow {
namespace {

namespace ev = shardscope::instrumentation;
using store::Store;

void write_steps(const Store& store, Batch& batch) {
  for (const store::StepRow& row : store.steps()) {
    batch.id(row.step).time(row.begin_ns).time(row.end_ns).integer(row.paused_ns).integer(row.tokens);
    store::for_each_step_column([&](const store::StepValue& value) { batch.number(row.*value.member); },
                                [&] { batch.flag(row.skipped); });
    batch.end_row();
  }
}
Schema step_schema() {
  Schema schema = {{"step", ColumnType::uint32},
                   {"begin_ns", ColumnType::int64},
                   {"end_ns", ColumnType::int64},
                   {"paused_ns", ColumnType::int64},
                   {"tokens", ColumnType::int64}};
  store::for_each_step_column(
      [&](const store::StepValue& value) {
        schema.push_back({value.name(), ColumnType::float64});
      },
      [&] {
        schema.push_back({"skipped", ColumnType::boolean});
      });
  return schema;
}

void write_ranks(const Store& store, Batch& batch) {
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
  return {{"rank", ColumnType::uint32},
          {"host", ColumnType::text},
          {"pid", ColumnType::int64},
          {"finished", ColumnType::boolean},
          {"exit_code", ColumnType::int64},
          {"events", ColumnType::int64},
          {"dropped", ColumnType::int64},
          {"lost_messages", ColumnType::int64},
          {"clock_offset_ns", ColumnType::int64},
          {"clock_residual_ns", ColumnType::int64},
          {"clock_drift_ppb", ColumnType::float64},
          {"last_event_ns", ColumnType::int64},
          {"state", ColumnType::text}};
}

void write_parameters(const Store& store, Batch& batch) {
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
  return {{"param", ColumnType::uint32},        {"name", ColumnType::text},
          {"dtype", ColumnType::text},          {"shape", ColumnType::text},
          {"elems", ColumnType::int64},         {"shard_elems", ColumnType::int64},
          {"padding_elems", ColumnType::int64}, {"persistent", ColumnType::boolean},
          {"frozen", ColumnType::boolean},      {"module", ColumnType::uint32}};
}

void write_modules(const Store& store, Batch& batch) {
  if (!store.has_tables()) return;
  for (const ev::ModuleInfo& row : store.tables().modules)
    batch.id(row.id).id(row.parent).text(row.path).text(row.type).end_row();
}
void write_slices(const Store& store, Batch& batch) {
  if (!store.has_tables()) return;
  for (const ev::SliceInfo& row : store.tables().slices) {
    batch.id(row.param).id(row.rank).integer(row.param_offset).integer(row.shard_offset);
    batch.integer(row.elems).integer(row.padding_elems);
    batch.integer(row.block_elems).integer(row.stride_elems).end_row();
  }
}
void write_messages(const Store& store, Batch& batch) {
  for (const store::Message& row : store.messages())
    batch.integer(row.at_ns).id(row.rank).text(store::name_of(row.severity)).text(row.text).end_row();
}
void write_gaps(const Store& store, Batch& batch) {
  for (const store::Gap& row : store.gaps()) {
    batch.id(row.rank).integer(row.begin_ns).integer(row.end_ns);
    if (row.events > 0) {
      batch.integer(static_cast<std::int64_t>(row.events));
    } else {
      batch.null();  // not known how many
    }
    batch.integer(static_cast<std::int64_t>(row.messages)).text(store::what_is_missing(row)).end_row();
  }
}

}  // namespace

std::unique_ptr<Rows> whole_table(const Store& store, const std::string& table) {
  const auto make = [&](Schema schema, void (*write)(const Store&, Batch&)) {
    return std::make_unique<WholeTable>(std::move(schema),
                                        [&store, write](Batch& batch) { write(store, batch); });
  };
  constexpr auto kId = ColumnType::uint32;
  constexpr auto kInteger = ColumnType::int64;
  constexpr auto kText = ColumnType::text;
  if (table == "steps") return make(step_schema(), write_steps);
  if (table == "ranks") return make(rank_schema(), write_ranks);
  if (table == "parameters") return make(parameter_schema(), write_parameters);
  if (table == "modules")
    return make({{"module", kId}, {"parent", kId}, {"path", kText}, {"type", kText}}, write_modules);
  if (table == "slices") {
    return make({{"param", kId},
                 {"rank", kId},
                 {"param_offset", kInteger},
                 {"shard_offset", kInteger},
                 {"elems", kInteger},
                 {"padding_elems", kInteger},
                 {"block_elems", kInteger},
                 {"stride_elems", kInteger}},
                write_slices);
  }
  if (table == "messages")
    return make({{"at_ns", kInteger}, {"rank", kId}, {"severity", kText}, {"text", kText}}, write_messages);
  if (table == "gaps") {
    return make({{"rank", kId},
                 {"begin_ns", kInteger},
                 {"end_ns", kInteger},
                 {"events", kInteger},
                 {"messages", kInteger},
                 {"reason", kText}},
                write_gaps);
  }
  return nullptr;
}

}  // namespace shardscope::arrow
