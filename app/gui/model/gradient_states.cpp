#include "app/gui/model/gradient_states.h"

#include <map>
#include <unordered_map>

#include "app/analysis/spans.h"
#include "app/gui/model/step_of.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

bool reduces(ev::CollectiveOp op) {
  return op == ev::CollectiveOp::reduce_scatter || op == ev::CollectiveOp::all_reduce ||
         op == ev::CollectiveOp::reduce;
}

/// Gradients that a backward has written, and that are in no bucket and no reduction since: accumulation
/// without reduction, and runs without buckets.
void add_accumulated(const store::Store& store, std::uint32_t rank, std::int64_t begin, std::int64_t at_ns,
                     std::vector<GradientState>& states) {
  std::vector<std::vector<std::uint32_t>> params_of(store.tables().modules.size());
  for (const ev::ParamInfo& param : store.tables().params) {
    for (const std::uint32_t module : param.modules) {
      if (module < params_of.size() && !param.frozen) params_of[module].push_back(param.id);
    }
  }
  analysis::for_each_span(
      store, {rank, ev::StreamId::compute}, begin, at_ns + 1, [&](const store::Span& span) {
        if (span.kind != ev::EventKind::module_begin || span.begin_ns < begin || span.end_ns > at_ns) return;
        const auto fields = ev::as<ev::EventKind::module_begin>(span);
        if (fields.pass != ev::Pass::backward || fields.module >= params_of.size()) return;
        for (const std::uint32_t param : params_of[fields.module]) {
          if (param >= states.size()) continue;
          GradientState& state = states[param];
          const bool anew = state.status == GradientStatus::none ||
                            state.status == GradientStatus::accumulated ||
                            state.status == GradientStatus::reduced;
          if (anew && state.since_ns < span.begin_ns)
            state = {GradientStatus::accumulated, ev::kNoId, span.end_ns};
        }
      });
}

}  // namespace

const char* word(const store::Vocabulary& words, GradientStatus status) noexcept {
  switch (status) {
    case GradientStatus::none:
      return "none";
    case GradientStatus::accumulated:
      return "accumulated, not reduced yet";
    case GradientStatus::in_bucket:
      return words.in_bucket;
    case GradientStatus::flushed:
      return "waits for its reduction";
    case GradientStatus::reducing:
      return "being reduced";
    case GradientStatus::reduced:
      return "reduced";
  }
  return "";
}

std::vector<GradientState> gradient_states(const store::Store& store, std::uint32_t rank,
                                           std::int64_t at_ns) {
  std::vector<GradientState> out(store.has_tables() ? store.tables().params.size() : 0);
  const auto step = step_of(store.steps(), at_ns);
  if (out.empty() || !step) return out;
  const std::int64_t begin = store.steps()[*step].begin_ns;
  const auto set = [&](std::uint32_t param, GradientStatus status, std::uint32_t bucket, std::int64_t since) {
    if (param < out.size()) out[param] = {status, bucket, since};
  };
  // The event that assigns a part to a collective precedes the collective's begin.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> parts;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> in_bucket;
  store.for_each_instant(rank, begin, at_ns + 1, [&](const ev::Event& event) {
    const auto at = static_cast<std::int64_t>(event.ticks);
    if (event.kind == ev::EventKind::bucket_add) {
      const auto add = ev::as<ev::EventKind::bucket_add>(event);
      set(add.param, GradientStatus::in_bucket, add.bucket, at);
      in_bucket[add.bucket].push_back(add.param);
    } else if (event.kind == ev::EventKind::bucket_flush) {
      const std::uint32_t bucket = ev::as<ev::EventKind::bucket_flush>(event).bucket;
      for (const std::uint32_t param : in_bucket[bucket]) set(param, GradientStatus::flushed, bucket, at);
      in_bucket.erase(bucket);
    } else if (event.kind == ev::EventKind::collective_part) {
      const auto part = ev::as<ev::EventKind::collective_part>(event);
      if (reduces(part.op)) parts[part.sequence].push_back(part.param);
    }
  });
  const store::LaneId lane{rank, ev::StreamId::reduce};
  analysis::for_each_span(store, lane, begin, at_ns + 1, [&](const store::Span& span) {
    if (span.kind != ev::EventKind::collective_begin || span.begin_ns > at_ns) return;
    const auto moved = parts.find(ev::as<ev::EventKind::collective_begin>(span).sequence);
    if (moved == parts.end()) return;
    const bool done = span.end_ns != store::kOpen && span.end_ns <= at_ns;
    for (const std::uint32_t param : moved->second) {
      // A later micro-step may have put the gradient into a bucket again.
      if (param >= out.size() || out[param].since_ns > span.begin_ns) continue;
      set(param, done ? GradientStatus::reduced : GradientStatus::reducing, out[param].bucket,
          done ? span.end_ns : span.begin_ns);
    }
  });
  add_accumulated(store, rank, begin, at_ns, out);
  return out;
}

const std::vector<GradientState>& GradientStatesAt::of(const store::Store& store, std::uint32_t rank,
                                                       std::int64_t at_ns) {
  const Key key{&store, store.revision(), at_ns};
  if (key_ != key) by_rank_.clear();
  key_ = key;
  const auto [found, made] = by_rank_.try_emplace(rank);
  if (made) found->second = gradient_states(store, rank, at_ns);
  return found->second;
}

BucketFlush opened_bucket(const ev::Event& event) {
  const auto open = ev::as<ev::EventKind::bucket_open>(event);
  BucketFlush out;
  out.opened_ns = static_cast<std::int64_t>(event.ticks);
  out.bucket = open.bucket;
  out.buffer = static_cast<std::uint32_t>(open.buffer);
  return out;
}

BucketFlush flush_of(const ev::Event& event, const BucketFlush& opened) {
  const auto flush = ev::as<ev::EventKind::bucket_flush>(event);
  BucketFlush out = opened;
  out.at_ns = static_cast<std::int64_t>(event.ticks);
  out.bucket = flush.bucket;
  out.trigger_param = flush.trigger_param;
  out.params = flush.params;
  out.elems = flush.elems;
  out.reason = flush.reason;
  return out;
}

std::vector<BucketFlush> bucket_flushes(const store::Store& store, std::uint32_t rank, std::int64_t begin_ns,
                                        std::int64_t end_ns) {
  std::vector<BucketFlush> out;
  std::map<std::uint32_t, BucketFlush> filling;
  store.for_each_instant(rank, begin_ns, end_ns, [&](const ev::Event& event) {
    if (event.kind == ev::EventKind::bucket_open) {
      const BucketFlush opened = opened_bucket(event);
      filling[opened.bucket] = opened;
    } else if (event.kind == ev::EventKind::bucket_flush) {
      const auto opened = filling.extract(ev::as<ev::EventKind::bucket_flush>(event).bucket);
      out.push_back(flush_of(event, opened.empty() ? BucketFlush{} : opened.mapped()));
    }
  });
  return out;
}

}  // namespace shardscope::gui
