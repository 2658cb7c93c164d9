// Details of a span: a collective, a wait, or GPU work.
#include <optional>

#include "app/analysis/communication.h"
#include "app/analysis/gpu_activity.h"
#include "app/analysis/quantity_text.h"
#include "app/gui/model/arrivals.h"
#include "app/gui/model/details.h"
#include "app/gui/model/details_fields.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/gui/model/span_text.h"
#include "app/store/gather_contents.h"
#include "app/store/names.h"
#include "app/store/span_label.h"
#include "app/store/span_time.h"
#include "instrumentation/bus_factor.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

/// The end of a span, or for an open one the time up to which it is known.
std::int64_t end_of(const AppState& app, std::uint32_t rank, const store::Span& span) {
  return store::time_of(app.store(), rank, span).until_ns;
}

std::uint32_t group_ranks(const AppState& app, std::uint32_t rank, const store::Span& span) {
  return analysis::ranks_of(app.store(), rank, span);
}

/// NCCL's algorithm, protocol and times of a collective, if its plugin was loaded.
void describe_nccl(const AppState& app, std::uint32_t rank, std::uint32_t sequence, Details& out) {
  const NcclNote* note = app.run->index().nccl(rank, sequence);
  if (note == nullptr) {
    // CPU runs have no NCCL data.
    const store::Store& data = app.store();
    const bool nccl = data.instant_count(rank, ev::EventKind::nccl_collective) > 0 ||
                      (data.has_tables() && data.tables().device.find("NCCL") != std::string::npos);
    if (nccl) {
      out.fields.push_back(
          {"NCCL", kMissing, "",
           "algorithm, protocol and channels: NCCL's profiler plugin was not loaded, or did not "
           "follow this one"});
    }
    return;
  }
  const std::string others = note->alike ? "" : " and others";
  const auto known = [](const char* name) { return std::string(name) == "unknown" ? kMissing : name; };
  if (note->operations > 1) add(out, "NCCL operations", std::to_string(note->operations));
  if (note->operations > 0) {
    add(out, "algorithm", known(store::name_of(note->first.algorithm)) + others);
    add(out, "protocol", known(store::name_of(note->first.protocol)) + others);
    add(out, "channels", std::to_string(note->first.channels) + others);
  }
  if (note->channels_timed > 0) {
    add(out, "NCCL kernel", duration(note->kernel_ns),
        "first channel's begin to last channel's end on the GPU's clock; " +
            std::to_string(note->channels_timed) + " of " + std::to_string(note->channels_used) +
            " channels timed");
    add(out, "channel spread", duration(note->spread_ns), "last channel's end - first channel's end");
  }
  if (note->proxies > 0) {
    add(out, "network", duration(note->proxy_ns),
        std::to_string(note->proxies) + " operations of NCCL's proxy, begin of the first to end of the last");
  }
}

void describe_collective(const AppState& app, store::LaneId lane, const store::Span& span, Details& out) {
  const auto fields = ev::as<ev::EventKind::collective_begin>(span);
  const std::int64_t length = end_of(app, lane.rank, span) - span.begin_ns;
  add(out, "elements", grouped(fields.elems));
  add(out, "bytes", bytes(fields.bytes), "S: full size over its ranks (metrics 2.3)");
  if (fields.code.known() && fields.code.scope() != ev::CollectiveScope::world) {
    const ev::GroupInfo* group = analysis::group_of(app.store(), lane.rank, span);
    add(out, "among",
        std::to_string(group_ranks(app, lane.rank, span)) + " ranks, " +
            (group != nullptr ? group->name : store::name_of(fields.code.scope())));
  }
  if (fields.code.holds_host())
    add(out, "call", "synchronous", "the host waited until it returned: no computation hides it");
  if (fields.code.end_is_bound())
    add(out, "end", "an upper bound", "the operation had ended by then; bandwidth is at least what is shown");
  if (fields.code.ended_by_error())
    add(out, "end", "by an error", "the operation failed; how many bytes it moved is not known");
  if (span.mark_ns > 0 && span.mark_ns >= span.begin_ns) {
    add(out, "waited for ranks", duration(span.mark_ns - span.begin_ns), "until every rank had arrived");
    add(out, "transfer", duration(end_of(app, lane.rank, span) - span.mark_ns),
        "from the last arrival to the end");
  }
  const std::vector<Arrival> came = arrivals(app.store(), lane, span);
  if (const Arrival* last = last_to_arrive(came)) {
    add(out, "last to arrive", "rank " + std::to_string(last->rank));
    add(out, "after the first", duration(last->late_ns), "begin on the last rank - begin on the first");
  }
  if (length > 0 && fields.bytes > 0 && span.end_ns != store::kOpen) {
    const double algorithm = static_cast<double>(fields.bytes) / static_cast<double>(length);
    const double factor = ev::bus_factor(fields.op, group_ranks(app, lane.rank, span));
    if (span.mark_ns > span.begin_ns && span.mark_ns < span.end_ns) {
      const double alone =
          static_cast<double>(fields.bytes) / static_cast<double>(span.end_ns - span.mark_ns);
      add(out, "algbw, transfer", bandwidth(alone), "S / time from the last arrival to the end");
      add(out, "busbw, transfer", bandwidth(alone * factor), "that x the operation's factor for this group");
    }
    add(out, "algbw, waiting", bandwidth(algorithm), "S / duration, waiting for the last rank included");
    add(out, "busbw, waiting", bandwidth(algorithm * factor), "that x the operation's factor for this group");
  }
  describe_nccl(app, lane.rank, fields.sequence, out);
  if (lane.stream != ev::StreamId::gather) return;
  const Fetch* fetch = app.run->index().fetch_of(lane.rank, span);
  if (fetch == nullptr) return;
  if (const std::string contents = store::contents_text(app.store(), fetch->params); !contents.empty())
    add(out, "contents", contents, "the modules whose parameters it gathers");
  add(out, "outcome", word(fetch->outcome()));
  add(out, "parameters", std::to_string(fetch->params.size()));
  if (fetch->wait_ns > 0) add(out, "compute waited", duration(fetch->wait_ns));
  if (fetch->outcome() == FetchOutcome::early) {
    add(out, "unused for", duration(fetch->unused_ns()), "first use - end of the gather");
  }
  out.reason = reason_of(app.store(), *fetch);
}

/// A kernel, copy or memset: its owner, launch delay, and why its stream was idle before.
void describe_gpu_work(const AppState& app, store::LaneId lane, const store::Span& span, Details& out) {
  const store::Store& data = app.store();
  const auto fields = ev::as<ev::EventKind::gpu_begin>(span);
  if (const std::string owner = gpu_owner(data, fields); !owner.empty()) add(out, "for", owner);
  if (fields.work == ev::GpuWork::kernel) {
    add(out, "threads", grouped(fields.amount));
  } else {
    add(out, "bytes", bytes(fields.amount));
    const std::int64_t length = end_of(app, lane.rank, span) - span.begin_ns;
    if (length > 0 && fields.amount > 0)
      add(out, "rate", bandwidth(static_cast<double>(fields.amount) / static_cast<double>(length)),
          "bytes / duration");
  }
  if (fields.cuda_stream != ev::kNoId) add(out, "CUDA stream", std::to_string(fields.cuda_stream));
  if (fields.delay_ns == ev::kNoDelay) {
    add(out, "launch to start", "launch not recorded");
  } else {
    add(out, "launch to start", duration(fields.delay_ns),
        "start on the GPU - the host's entry into the launching call; below 0: the error of the clocks");
  }
  const auto gap = analysis::gap_before(data, lane, span);
  if (!gap) return;
  add(out, "stream idle before", duration(gap->at.end - gap->at.begin - gap->paused_ns),
      "since the end of its last work, pauses cut out");
  if (const std::string parts = analysis::gap_text(gap->parts, analysis::time_text); !parts.empty())
    out.reason = "Idle before: " + parts;
}

}  // namespace

std::string idle_text(const AppState& app, store::LaneId lane, std::int64_t at_ns) {
  constexpr std::int64_t kLookAhead = 1'000'000'000;
  const store::Store& data = app.store();
  if (!analysis::gpu_known(data, lane.rank, at_ns, at_ns + 1)) return "No records of the GPU here";
  std::optional<store::Span> next;
  for (std::int64_t ahead = kLookAhead / 1024; !next && ahead <= kLookAhead; ahead *= 32) {
    data.for_each_span(lane, 0, at_ns, at_ns + ahead, [&](const store::Span& span) {
      if (!next && span.begin_ns > at_ns) next = span;
    });
  }
  if (!next) return {};
  const auto gap = analysis::gap_before(data, lane, *next);
  if (!gap || gap->at.begin > at_ns) return {};
  const std::string parts = analysis::gap_text(gap->parts, analysis::time_text);
  if (parts.empty()) return "Paused";
  return "Idle " + analysis::time_text(gap->at.end - gap->at.begin - gap->paused_ns) + ": " + parts;
}

Details describe_span(const AppState& app, store::LaneId lane, const store::Span& span) {
  Details out;
  const store::Store& data = app.store();
  const store::Vocabulary& words = words_of(data);
  out.meaning = meaning_on(lane.stream, span.kind, span.code);
  out.title = label_of(data, lane.rank, span);
  out.subtitle = "rank " + std::to_string(lane.rank) + ", " + word(lane.stream);
  add_span_times(app, lane.rank, span, out);
  switch (span.kind) {
    case ev::EventKind::module_begin:
      out.subtitle += std::string(", ") + word(ev::as<ev::EventKind::module_begin>(span).pass);
      break;
    case ev::EventKind::collective_begin:
      describe_collective(app, lane, span, out);
      break;
    case ev::EventKind::fetch_wait_begin: {
      const auto fields = ev::as<ev::EventKind::fetch_wait_begin>(span);
      add(out, "bytes", bytes(fields.bytes));
      const Fetch* fetch = app.run->index().fetch_by_id(lane.rank, fields.gather);
      const std::string contents =
          fetch == nullptr ? std::string() : store::contents_text(data, fetch->params);
      out.reason =
          "Compute waited " + (fields.module == ev::kNoId ? "for " + store::awaited(data, span)
                                                          : "at " + whole_unit_name(data, fields.module));
      if (fields.gather != ev::kNoId)
        out.reason += std::string(" until ") + words.gather + " " + std::to_string(fields.gather) +
                      (contents.empty() ? "" : " of " + contents) + " had arrived";
      if (fetch != nullptr) add(out, "outcome", word(fetch->outcome()));
      break;
    }
    case ev::EventKind::reduce_wait_begin: {
      const auto fields = ev::as<ev::EventKind::reduce_wait_begin>(span);
      add(out, "bytes", bytes(fields.bytes));
      out.reason = "Compute waited until " + store::awaited(data, span) +
                   (words.has_buckets && fields.bucket != ev::kNoId ? " was reduced" : " had ended");
      break;
    }
    case ev::EventKind::deferred_wait_begin:
      add(out, "elements", grouped(ev::as<ev::EventKind::deferred_wait_begin>(span).elems));
      out.reason = "Compute waited until the CPU's update of the columns not chosen was here";
      break;
    case ev::EventKind::data_wait_begin:
      out.reason = "Compute had nothing to do until micro-batch " +
                   std::to_string(ev::as<ev::EventKind::data_wait_begin>(span).micro_step) +
                   " was loaded and copied to the device";
      break;
    case ev::EventKind::optimizer_begin:
      add(out, "elements", grouped(ev::as<ev::EventKind::optimizer_begin>(span).elems));
      break;
    case ev::EventKind::transfer_begin:
      add(out, "bytes", bytes(ev::as<ev::EventKind::transfer_begin>(span).bytes));
      break;
    case ev::EventKind::gpu_begin:
      describe_gpu_work(app, lane, span, out);
      break;
    case ev::EventKind::span_begin: {
      const auto fields = ev::as<ev::EventKind::span_begin>(span);
      if (fields.id != 0 && fields.id != ev::kNoId)
        add(out, "id", std::to_string(fields.id), "given by the program");
      if (fields.value != 0) add(out, "value", grouped(fields.value), "given by the program");
      break;
    }
    case ev::EventKind::gpu_sync_begin:
      out.reason = std::string("The host waited until ") +
                   word(ev::as<ev::EventKind::gpu_sync_begin>(span).sync) + " was done";
      break;
    default:
      break;
  }
  return out;
}

}  // namespace shardscope::gui
