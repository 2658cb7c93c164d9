#include "app/export/perfetto.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "app/export/counter_samples.h"
#include "app/export/output_file.h"
#include "app/export/protobuf.h"
#include "app/export/span_walk.h"
#include "app/export/trace_contents.h"
#include "app/store/gap_text.h"
#include "app/store/gather_contents.h"
#include "app/store/lane_name.h"
#include "app/store/names.h"
#include "app/store/rank_end.h"

namespace shardscope::exporter {
namespace {

namespace ev = shardscope::instrumentation;
using ev::EventKind;
using store::Store;

// Field numbers of perfetto/trace (trace_packet.proto, track_event.proto, track_descriptor.proto, ...).
namespace packet {
constexpr unsigned kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInternedData = 12, kSequenceFlags = 13,
                   kTrackDescriptor = 60;
}
namespace descriptor {
constexpr unsigned kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8, kOrder = 12,
                   kChildOrdering = 11;
}
namespace track_event {
constexpr unsigned kAnnotation = 4, kType = 9, kNameIid = 10, kTrack = 11, kCounterValue = 30,
                   kDoubleCounterValue = 44, kFlow = 47, kTerminatingFlow = 48, kCategory = 22;
constexpr std::uint64_t kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace track_event
constexpr std::uint64_t kSequenceId = 1;
constexpr std::uint64_t kUnitBytes = 3;
constexpr unsigned kUnitName = 6;  // of CounterDescriptor

/// Track ids: the rank in the upper bits, the track in the lower. Never zero.
constexpr std::uint64_t process_track(std::uint32_t rank) {
  return (static_cast<std::uint64_t>(rank) + 1) << 16;
}
constexpr std::uint64_t stream_track(store::LaneId lane) {
  return process_track(lane.rank) + 1 + static_cast<std::uint64_t>(lane.stream);
}
constexpr std::uint64_t memory_track(std::uint32_t rank, std::size_t pool, std::size_t category) {
  return process_track(rank) + 256 + pool * 32 + category;
}
constexpr std::uint64_t counter_track(std::uint32_t rank, std::size_t number) {
  return process_track(rank) + 2048 + number;
}
constexpr std::uint64_t gap_track(std::uint32_t rank) { return process_track(rank) + 1024; }
constexpr std::uint64_t message_track(std::uint32_t rank) { return process_track(rank) + 1025; }
constexpr std::uint64_t end_track(std::uint32_t rank) { return process_track(rank) + 1026; }

class PerfettoWriter {
 public:
  PerfettoWriter(std::ostream& out, const Store& store, const ExportPart& part)
      : out_(out), store_(store), part_(part) {}

  void write() {
    for (const store::RankRow& rank : store_.ranks()) {
      if (!part_.has_rank(rank.rank)) continue;
      describe(rank);
      collect_flows(rank.rank);
      params_ = params_of(store_, rank.rank, part_);
      for (const store::LaneId lane : store_.lanes()) {
        if (lane.rank == rank.rank) spans(lane);
      }
      instants(rank.rank);
      memory(rank.rank);
      counters(rank.rank);
    }
    gaps();
    rank_ends();
    messages();
    training();
  }

 private:
  void emit(const Protobuf& body) {
    Protobuf trace;
    trace.message(1, body);
    out_.write(trace.bytes().data(), static_cast<std::streamsize>(trace.bytes().size()));
    if (!out_) throw std::runtime_error("Perfetto trace: cannot write it; the disk may be full");
  }

  void describe_track(std::uint64_t uuid, std::string_view name, std::uint64_t parent,
                      const Protobuf& more = {}) {
    Protobuf track;
    track.varint(descriptor::kUuid, uuid);
    if (!name.empty()) track.string(descriptor::kName, name);
    if (parent != 0) track.varint(descriptor::kParent, parent);
    track.append(more);
    Protobuf body;
    body.varint(packet::kSequence, kSequenceId);
    body.message(packet::kTrackDescriptor, track);
    emit(body);
  }

  void describe(const store::RankRow& rank) {
    const std::int32_t pid = static_cast<std::int32_t>(rank.rank) + 1;  // pid 0 is the idle process
    Protobuf process;
    process.varint(1, static_cast<std::uint64_t>(pid));
    process.string(6, "rank " + std::to_string(rank.rank) + (rank.host.empty() ? "" : " on " + rank.host) +
                          (store_.has_tables() && store_.tables().simulated ? " (simulated)" : ""));
    Protobuf more;
    more.message(descriptor::kProcess, process);
    more.varint(descriptor::kChildOrdering, 3);
    describe_track(process_track(rank.rank), {}, 0, more);
    for (const store::LaneId lane : store_.lanes()) {
      if (lane.rank == rank.rank) describe(lane);
    }
  }
  void describe(store::LaneId lane) {
    if (!described_.insert(stream_track(lane)).second) return;
    Protobuf order;
    order.varint(descriptor::kOrder, static_cast<std::uint64_t>(lane.stream));
    describe_track(stream_track(lane), store::lane_name(store_, lane), process_track(lane.rank), order);
  }

  Protobuf event(std::uint64_t type, std::uint64_t track) {
    Protobuf out;
    out.varint(track_event::kType, type);
    out.varint(track_event::kTrack, track);
    return out;
  }

  /// Writes a track event; `name` is interned: its text is written once.
  void send(std::int64_t at_ns, Protobuf body, std::string_view name = {}) {
    Protobuf whole;
    whole.varint(packet::kTimestamp, static_cast<std::uint64_t>(at_ns));
    whole.varint(packet::kSequence, kSequenceId);
    whole.varint(packet::kSequenceFlags, first_ ? 1 : 2);  // 1: the interned state is reset
    first_ = false;
    if (!name.empty()) {
      const auto [entry, added] = names_.try_emplace(std::string(name), names_.size() + 1);
      if (added) {
        Protobuf text;
        text.varint(1, entry->second);
        text.string(2, name);
        Protobuf interned;
        interned.message(2, text);  // InternedData.event_names
        whole.message(packet::kInternedData, interned);
      }
      body.varint(track_event::kNameIid, entry->second);
    }
    whole.message(packet::kTrackEvent, body);
    emit(whole);
  }

  static void annotate(Protobuf& event, std::string_view name, std::int64_t value) {
    Protobuf annotation;
    annotation.string(10, name);
    annotation.varint(4, static_cast<std::uint64_t>(value));
    event.message(track_event::kAnnotation, annotation);
  }
  static void annotate(Protobuf& event, std::string_view name, std::string_view value) {
    Protobuf annotation;
    annotation.string(10, name);
    annotation.string(6, value);
    event.message(track_event::kAnnotation, annotation);
  }

  using FlowsAt = std::unordered_map<std::int64_t, std::vector<std::uint64_t>>;  ///< flow ids by time
  struct Flows {
    FlowsAt from, to;
  };

  class Annotations final : public ArgumentSink {
   public:
    explicit Annotations(Protobuf& event) : event_(event) {}
    void number(const char* key, std::int64_t value) override { annotate(event_, key, value); }
    void text(const char* key, std::string_view value) override { annotate(event_, key, value); }

   private:
    Protobuf& event_;
  };

  /// Instants on the tracks of their streams.
  void instants(std::uint32_t rank) {
    for_each_trace_instant(store_, rank, part_, [&](const TraceInstant& instant) {
      const store::LaneId lane{rank, instant.event->stream};
      describe(lane);  // a lane without slices is not among the store's lanes
      Protobuf body = event(track_event::kInstant, stream_track(lane));
      body.string(track_event::kCategory, ev::name_of(instant.event->kind));
      Annotations annotations(body);
      instant.arguments(annotations);
      send(instant.at_ns, std::move(body), instant.name);
    });
  }

  void collect_flows(std::uint32_t rank) {
    gathers_ = reductions_ = {};
    for (const Flow& flow : flows_of(store_, rank, part_)) {
      Flows& of = flow.reduces ? reductions_ : gathers_;
      of.from[flow.from_ns].push_back(flow.id);
      of.to[flow.to_ns].push_back(flow.id);
    }
  }

  void spans(store::LaneId lane) {
    const std::uint64_t track = stream_track(lane);
    std::vector<std::int64_t> ends;  // of the open slices, outermost first
    const auto close_until = [&](std::int64_t ns) {
      for (; !ends.empty() && ends.back() <= ns; ends.pop_back())
        send(ends.back(), event(track_event::kEnd, track));
    };
    walk_part(store_, lane, part_, [&](const WalkedSpan& walked) {
      const store::Span& span = *walked.span;
      close_until(span.begin_ns);
      Protobuf begin = event(track_event::kBegin, track);
      begin.string(track_event::kCategory, ev::name_of(span.kind));
      if (span.kind == EventKind::collective_begin) {
        const auto fields = ev::as<EventKind::collective_begin>(span);
        annotate(begin, "sequence", fields.sequence);
        annotate(begin, "elems", fields.elems);
        annotate(begin, "bytes", fields.bytes);
        if (span.mark_ns != 0) annotate(begin, "all_ranks_arrived_ns", span.mark_ns);
        if (const auto moved = params_.find(fields.sequence); moved != params_.end())
          annotate(begin, "holds", store::contents_text(store_, moved->second));
        if (lane.stream == ev::StreamId::gather || lane.stream == ev::StreamId::reduce)
          add_flows(begin, track_event::kFlow,
                    lane.stream == ev::StreamId::gather ? gathers_.from : reductions_.from, span.begin_ns,
                    span.begin_ns + 1);
      } else if (span.kind == EventKind::fetch_wait_begin || span.kind == EventKind::reduce_wait_begin) {
        const Flows& of = span.kind == EventKind::fetch_wait_begin ? gathers_ : reductions_;
        add_flows(begin, track_event::kTerminatingFlow, of.to, walked.end_ns - 1, walked.end_ns + 1);
      }
      Annotations annotations(begin);
      span_arguments(walked, annotations);
      if (!walked.time.ended) annotate(begin, "not_ended", store::why_open(store_, lane.rank));
      send(span.begin_ns, std::move(begin), span_label(store_, lane.rank, span));
      // On a track a child never ends after its parent.
      ends.push_back(ends.empty() ? walked.end_ns : std::min(walked.end_ns, ends.back()));
    });
    close_until(INT64_MAX);
  }

  /// Adds the ids of the flows that start or end (`flows`) in [from, to).
  static void add_flows(Protobuf& event, unsigned field, const FlowsAt& flows, std::int64_t from,
                        std::int64_t to) {
    for (std::int64_t at = from; at < to; ++at) {
      const auto found = flows.find(at);
      if (found == flows.end()) continue;
      for (const std::uint64_t id : found->second) event.fixed64(field, id);
      return;
    }
  }

  void memory(std::uint32_t rank) {
    for (std::size_t p = 0; p < ev::kMemoryPoolCount; ++p) {
      const auto pool = static_cast<ev::MemoryPool>(p);
      if (!store_.memory_peak(rank, pool)) continue;
      store::CategoryBytes last{};
      std::array<bool, ev::kMemoryCategoryCount> described{};
      std::int64_t last_ns = -1;
      const auto counters = [&](std::int64_t at) {
        last_ns = at;
        const store::MemorySample sample = store_.memory_at(rank, pool, at);
        for (std::size_t c = 0; c < last.size(); ++c) {
          if (sample.bytes[c] == last[c]) continue;
          last[c] = sample.bytes[c];
          if (!described[c]) describe_memory(rank, p, c);
          described[c] = true;
          Protobuf counter = event(track_event::kCounter, memory_track(rank, p, c));
          counter.varint(track_event::kCounterValue, static_cast<std::uint64_t>(sample.bytes[c]));
          send(at, std::move(counter));
        }
      };
      const auto begin = state_begins(store_, rank, part_);
      if (begin && part_.has_kind(EventKind::memory_alloc)) counters(*begin);
      for_each_instant(store_, rank, part_, [&](const ev::Event& e) {
        if (e.kind != EventKind::memory_alloc && e.kind != EventKind::memory_free) return;
        const auto at = static_cast<std::int64_t>(e.ticks);
        if (ev::as<EventKind::memory_alloc>(e).pool == pool && at != last_ns) counters(at);
      });
    }
  }

  void describe_memory(std::uint32_t rank, std::size_t pool, std::size_t category) {
    Protobuf unit;
    unit.varint(3, kUnitBytes);
    Protobuf more;
    more.message(descriptor::kCounter, unit);
    describe_track(memory_track(rank, pool, category),
                   std::string(store::name_of(static_cast<ev::MemoryPool>(pool))) + " " +
                       store::name_of(static_cast<ev::MemoryCategory>(category)),
                   process_track(rank), more);
  }

  void counters(std::uint32_t rank) {
    const analysis::CounterSeries* described = nullptr;
    std::uint64_t track = counter_track(rank, 0);
    for_each_counter_sample(
        store_, rank, part_,
        [&](const analysis::CounterSeries& series, const analysis::CounterSample& sample) {
          if (described != &series) {
            Protobuf unit;
            if (!series.unit.empty()) unit.string(kUnitName, series.unit);
            Protobuf more;
            more.message(descriptor::kCounter, unit);
            describe_track(++track, series.name, process_track(rank), more);
            described = &series;
          }
          Protobuf counter = event(track_event::kCounter, track);
          counter.real(track_event::kDoubleCounterValue, sample.value);
          send(sample.at_ns, std::move(counter));
        });
  }

  void gaps() {
    std::unordered_map<std::uint32_t, bool> described;
    for (const store::Gap& gap : store_.gaps()) {
      if (!part_.has(gap)) continue;
      if (!described[gap.rank])
        describe_track(gap_track(gap.rank), "events missing", process_track(gap.rank));
      described[gap.rank] = true;
      Protobuf instant = event(track_event::kInstant, gap_track(gap.rank));
      annotate(instant, "until_ns", gap.end_ns);
      if (gap.events > 0) annotate(instant, "events", static_cast<std::int64_t>(gap.events));
      annotate(instant, "reason", store::what_is_missing(gap));
      send(gap.begin_ns, std::move(instant), "events missing");
    }
  }

  void messages() {
    std::unordered_set<std::uint32_t> described;
    for (const store::Message& message : store_.messages()) {
      if (!part_.has(message)) continue;
      if (described.insert(message.rank).second)
        describe_track(message_track(message.rank), "messages", process_track(message.rank));
      Protobuf instant = event(track_event::kInstant, message_track(message.rank));
      annotate(instant, "severity", store::name_of(message.severity));
      send(message.at_ns, std::move(instant), message.text);
    }
  }

  /// Marks where a rank ended abnormally, which is why its slices stop there.
  void rank_ends() {
    for (const store::RankRow& rank : store_.ranks()) {
      const store::RankEnd end = store::rank_end(store_, rank);
      if (!store::is_failure(end.how) || !part_.has_rank(rank.rank) || !part_.of(rank.rank).has(end.at_ns))
        continue;
      describe_track(end_track(rank.rank), "end of the rank", process_track(rank.rank));
      Protobuf instant = event(track_event::kInstant, end_track(rank.rank));
      annotate(instant, "exit_message", end.exit_message);
      send(end.at_ns, std::move(instant), store::text_of(end));
    }
  }

  void training() {
    std::uint64_t track = 0;  // 1, 2, ...: below the track ids of ranks
    for (const store::StepValue& value : store::kStepValues) {
      Protobuf more;
      more.message(descriptor::kCounter, Protobuf());
      describe_track(++track, counter_name(value), 0, more);
      for (const store::StepRow& step : store_.steps()) {
        if (!part_.has_end(step) || !std::isfinite(step.*value.member)) continue;
        Protobuf counter = event(track_event::kCounter, track);
        counter.real(track_event::kDoubleCounterValue, step.*value.member);
        send(step.end_ns, std::move(counter));
      }
    }
  }

  /// "loss scale"; "gradient norm" is the track's name from before names came from the table of kinds.
  static std::string counter_name(const store::StepValue& value) {
    if (value.kind == ev::EventKind::grad_norm) return "gradient norm";
    std::string name = value.name();
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
  }

  std::ostream& out_;
  const Store& store_;
  const ExportPart& part_;
  std::unordered_map<std::string, std::uint64_t> names_;
  Flows gathers_, reductions_;                   ///< of the current rank
  std::unordered_set<std::uint64_t> described_;  ///< stream tracks that have a descriptor
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> params_;  ///< by collective, of one rank
  bool first_ = true;
};

}  // namespace

void write_perfetto(std::ostream& out, const Store& store, const ExportPart& part) {
  PerfettoWriter(out, store, part).write();
}

void write_perfetto(const std::string& path, const Store& store, const ExportPart& part) {
  OutputFile file(path);
  file.write([&](std::ostream& out) { write_perfetto(out, store, part); });
  file.commit();
}

}  // namespace shardscope::exporter
