#include "app/store/table_rows.h"

#include <nlohmann/json.hpp>
#include <string>

#include "app/store/names.h"
#include "app/store/recording_schema.h"
#include "instrumentation/capability.h"

namespace shardscope::store {
namespace {

// [Note: whose rows these are]
// Ranks send their tables one by one, and again whenever they grow. Tables common to all ranks (`run`,
// modules, parameters, slices) are written from the first rank that has them, so that a run of 1,024 ranks
// does not write them 1,024 times; tables that differ (groups, lane names) have a column for the rank.
// A table may be sent again: INSERT OR REPLACE by its key, or all rows rewritten where it has no key.

/// "steps,modules,loss"
std::string names_of(std::uint64_t capabilities) {
  std::string out;
  for (std::uint8_t bit = 0; bit < ev::kCapabilityCount; ++bit) {
    if ((capabilities >> bit & 1U) == 0) continue;
    out += (out.empty() ? "" : ",");
    out += ev::name_of(static_cast<ev::Capability>(bit));
  }
  return out;
}

/// Properties of the run, and what its program can record.
void write_meta(Database& db, const ev::RunTables& t) {
  Statement put = db.prepare("INSERT OR REPLACE INTO meta VALUES(?1, ?2)");
  if (!t.framework.empty()) put.bind(1, std::string("framework")).bind(2, t.framework).run();
  if (t.records != 0) put.bind(1, std::string("records")).bind(2, names_of(t.records)).run();
  if (t.not_recorded.empty()) return;
  nlohmann::json lacks = nlohmann::json::array();
  for (const ev::NotRecorded& lack : t.not_recorded)
    lacks.push_back({{"what", names_of(lack.what)}, {"why", lack.why}});
  // Reasons are text of a user's script: invalid UTF-8 in it must not end the recording.
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  put.bind(1, std::string("not_recorded")).bind(2, lacks.dump(-1, ' ', false, kReplace)).run();
}

/// A rank's own tables.
void write_own(Database& db, std::uint32_t rank, const ev::RunTables& t) {
  if (!t.groups.empty()) {
    Statement group = db.prepare("INSERT OR REPLACE INTO process_groups VALUES(?1,?2,?3,?4,?5)");
    for (const ev::GroupInfo& g : t.groups) {
      group.bind(1, std::int64_t{rank}).bind(2, std::int64_t{g.id}).bind(3, g.name);
      group.bind(4, std::string(name_of(g.purpose))).bind(5, nlohmann::json(g.ranks).dump()).run();
    }
  }
  if (t.lanes.empty()) return;
  Statement lane = db.prepare("INSERT OR REPLACE INTO lane_names VALUES(?1,?2,?3)");
  for (const ev::LaneName& l : t.lanes)
    lane.bind(1, std::int64_t{rank}).bind(2, std::string(name_of(l.lane))).bind(3, l.name).run();
}

/// One row. Bytes are per element, `elems` is of the whole model (all ranks together).
void write_run(Database& db, const ev::RunTables& t) {
  db.execute("DELETE FROM run");
  db.prepare("INSERT INTO run VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)")
      .bind(1, t.run_id)
      .bind(2, t.model)
      .bind(3, t.device)
      .bind(4, t.hardware)
      .bind(5, t.versions)
      .bind(6, t.config_json)
      .bind(7, std::int64_t{t.world})
      .bind(8, std::int64_t{t.local_world})
      .bind(9, std::int64_t{t.stage})
      .bind(10, t.elems)
      .bind(11, std::int64_t{t.param_bytes})
      .bind(12, std::int64_t{t.grad_bytes})
      .bind(13, std::int64_t{t.master_bytes})
      .bind(14, t.link_gbps)
      .bind(15, t.link_latency_us)
      .bind(16, std::int64_t{t.simulated})
      .run();
}

/// Modules in pre-order, their parameters by position, parameters, slices (elements, per parameter and rank)
/// and parameter groups.
void write_lists(Database& db, const ev::RunTables& t) {
  Statement module = db.prepare("INSERT OR REPLACE INTO modules VALUES(?1,?2,?3,?4,?5,?6)");
  Statement module_param = db.prepare("INSERT OR REPLACE INTO module_params VALUES(?1,?2,?3)");
  for (const ev::ModuleInfo& m : t.modules) {
    // -1 for the root's parent: NULL would make joins drop it.
    module.bind(1, std::int64_t{m.id})
        .bind(2, m.parent == ev::kNoId ? std::int64_t{-1} : std::int64_t{m.parent});
    module.bind(3, m.path)
        .bind(4, m.type)
        .bind(5, std::int64_t{m.hooks})
        .bind(6, std::int64_t{m.model})
        .run();
    for (std::size_t i = 0; i < m.params.size(); ++i) {
      module_param.bind(1, std::int64_t{m.id})
          .bind(2, static_cast<std::int64_t>(i))
          .bind(3, std::int64_t{m.params[i]})
          .run();
    }
  }
  Statement param = db.prepare("INSERT OR REPLACE INTO params VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)");
  for (const ev::ParamInfo& p : t.params) {
    std::string shape = "[";  // JSON, for json_each()
    for (std::size_t d = 0; d < p.shape.size(); ++d) {
      if (d > 0) shape += ',';
      shape += std::to_string(p.shape[d]);
    }
    shape += ']';
    param.bind(1, std::int64_t{p.id}).bind(2, p.name).bind(3, p.dtype).bind(4, shape).bind(5, p.elems);
    param.bind(6, p.shard_elems).bind(7, p.padding_elems).bind(8, std::int64_t{p.persistent});
    param.bind(9, std::int64_t{p.frozen}).run();
  }
  db.execute("DELETE FROM slices");
  Statement slice = db.prepare("INSERT INTO slices VALUES(?1,?2,?3,?4,?5,?6,?7,?8)");
  for (const ev::SliceInfo& c : t.slices) {
    slice.bind(1, std::int64_t{c.param}).bind(2, std::int64_t{c.rank}).bind(3, c.param_offset);
    slice.bind(4, c.shard_offset).bind(5, c.elems).bind(6, c.padding_elems);
    slice.bind(7, c.block_elems).bind(8, c.stride_elems).run();
  }
  // Created here: recordings of runs without groups do not have the table.
  if (t.param_groups.empty()) return;
  db.execute(kParamGroupsSchema);
  Statement group = db.prepare("INSERT OR REPLACE INTO param_groups VALUES(?1,?2,?3,?4,?5,?6,?7,?8)");
  for (std::size_t i = 0; i < t.param_groups.size(); ++i) {
    const ev::ParamGroupInfo& g = t.param_groups[i];
    group.bind(1, static_cast<std::int64_t>(i)).bind(2, g.name).bind(3, g.lr).bind(4, g.beta1);
    group.bind(5, g.beta2)
        .bind(6, g.eps)
        .bind(7, g.weight_decay)
        .bind(8, nlohmann::json(g.params).dump())
        .run();
  }
}

}  // namespace

void TableRows::write(Database& database, std::uint32_t rank, const ev::RunTables& tables) {
  if (!run_of_ || *run_of_ == rank) {
    write_run(database, tables);
    write_meta(database, tables);
    if (!tables.models.empty()) {
      Statement model = database.prepare("INSERT OR REPLACE INTO models VALUES(?1,?2,?3)");
      for (const ev::ModelInfo& m : tables.models)
        model.bind(1, std::int64_t{m.id}).bind(2, m.name).bind(3, m.role).run();
    }
    run_of_ = rank;
  }
  // One rank may have sent them for all.
  if (!tables.modules.empty() && (!lists_of_ || *lists_of_ == rank)) {
    write_lists(database, tables);
    lists_of_ = rank;
  }
  write_own(database, rank, tables);
}

}  // namespace shardscope::store
