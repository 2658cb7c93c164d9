// Tables over the whole run, complete also where the recorder's limits deleted events: sums, peaks,
// distributions, own times of ranks, and the moments around which all events were kept.
#include "app/analysis/distributions.h"
#include "app/arrow/table_definition.h"
#include "app/store/names.h"

namespace shardscope::arrow {
namespace {

namespace ev = shardscope::instrumentation;
using store::Store;

void write_span_summary(const Store& store, const store::RecordingInfo&, Batch& batch) {
  for (const store::SpanTotal& row : store.span_totals()) {
    batch.id(row.lane.rank).text(store::name_of(row.lane.stream)).text(ev::name_of(row.kind)).id(row.code);
    batch.integer(row.count).integer(row.total_ns).integer(row.min_ns).integer(row.max_ns).end_row();
  }
}
Schema span_summary_schema() {
  return {{"rank", kId},       {"stream", kText},      {"kind", kText},      {"code", kId},
          {"count", kInteger}, {"total_ns", kInteger}, {"min_ns", kInteger}, {"max_ns", kInteger}};
}

void write_memory_peaks(const Store& store, const store::RecordingInfo&, Batch& batch) {
  for (const store::RankRow& rank : store.ranks()) {
    for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
      const auto pool = static_cast<ev::MemoryPool>(p);
      const std::optional<store::MemorySample> peak = store.memory_peak(rank.rank, pool);
      if (!peak) continue;
      const auto put = [&](const char* category, std::int64_t bytes) {
        batch.id(rank.rank)
            .text(store::name_of(pool))
            .time(peak->at_ns)
            .text(category)
            .integer(bytes)
            .end_row();
      };
      put("total", peak->total());
      for (std::size_t c = 0; c < peak->bytes.size(); ++c) {
        if (peak->bytes[c] != 0) put(store::name_of(static_cast<ev::MemoryCategory>(c)), peak->bytes[c]);
      }
    }
  }
}
Schema memory_peak_schema() {
  return {{"rank", kId}, {"pool", kText}, {"at_ns", kInteger}, {"category", kText}, {"bytes", kInteger}};
}

void write_own_times(const Store& store, const store::RecordingInfo&, Batch& batch) {
  for (const store::OwnTimeRow& row : store.own_times()) {
    batch.id(row.rank).id(row.first_step).id(row.last_step).id(row.steps);
    batch.integer(row.own_ns).integer(row.waited_ns).end_row();
  }
}
Schema own_time_schema() {
  return {{"rank", kId},  {"first_step", kId},  {"last_step", kId},
          {"steps", kId}, {"own_ns", kInteger}, {"waited_ns", kInteger}};
}

void write_moments(const Store& store, const store::RecordingInfo&, Batch& batch) {
  for (const store::Moment& row : store.moments()) {
    batch.time(row.at_ns).time(row.begin_ns).time(row.end_ns).text(row.kind);
    batch.id(row.step).id(row.rank).text(row.text).end_row();
  }
}
Schema moment_schema() {
  return {{"at_ns", kInteger}, {"begin_ns", kInteger}, {"end_ns", kInteger}, {"kind", kText},
          {"step", kId},       {"rank", kId},          {"text", kText}};
}

void write_distributions(const Store& store, const store::RecordingInfo& info, Batch& batch) {
  const std::optional<analysis::Distributions> all = analysis::distributions(store, info);
  if (!all) return;
  for (const analysis::Distribution& row : all->list) {
    batch.text(row.what);
    if (row.module.empty()) {
      batch.null();  // all modules together
    } else {
      batch.text(row.module);
    }
    batch.integer(static_cast<std::int64_t>(row.count)).number(row.p50_ms).number(row.p90_ms);
    batch.number(row.p95_ms).number(row.p99_ms).number(row.min_ms).number(row.max_ms);
    if (row.longest) {
      batch.id(row.longest->rank).number(row.longest->p99_ms);
    } else {
      batch.null().null();
    }
    batch.end_row();
  }
}
Schema distribution_schema() {
  return {{"what", kText},
          {"module", kText},
          {"count", kInteger},
          {"p50_ms", kNumber},
          {"p90_ms", kNumber},
          {"p95_ms", kNumber},
          {"p99_ms", kNumber},
          {"min_ms", kNumber},
          {"max_ms", kNumber},
          {"longest_rank", kId},
          {"longest_rank_p99_ms", kNumber}};
}

void write_rank_distributions(const Store&, const store::RecordingInfo& info, Batch& batch) {
  for (const auto& [rank, row] : analysis::rank_distributions(info)) {
    batch.id(rank).text(row.what).integer(static_cast<std::int64_t>(row.count));
    batch.number(row.p50_ms).number(row.p90_ms).number(row.p95_ms).number(row.p99_ms);
    batch.number(row.min_ms).number(row.max_ms).end_row();
  }
}
Schema rank_distribution_schema() {
  return {{"rank", kId},       {"what", kText},     {"count", kInteger},
          {"p50_ms", kNumber}, {"p90_ms", kNumber}, {"p95_ms", kNumber},
          {"p99_ms", kNumber}, {"min_ms", kNumber}, {"max_ms", kNumber}};
}

constexpr std::array kRetainedTables = {
    TableDefinition{"span_summary", span_summary_schema, write_span_summary},
    TableDefinition{"memory_peaks", memory_peak_schema, write_memory_peaks},
    TableDefinition{"own_times", own_time_schema, write_own_times},
    TableDefinition{"moments", moment_schema, write_moments},
    TableDefinition{"distributions", distribution_schema, write_distributions},
    TableDefinition{"rank_distributions", rank_distribution_schema, write_rank_distributions},
};

}  // namespace

std::span<const TableDefinition> retained_tables() { return kRetainedTables; }

}  // namespace shardscope::arrow
