// Decodes batches, replies and commands: checks ranges of enumerations, ids and timestamps, and that counts
// are consistent.
#include "instrumentation/wire_bodies.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "instrumentation/wire_values.h"

namespace shardscope::instrumentation::wire {

namespace {

/// First and count of each range, in ascending order.
std::vector<RelayHello::Range> ranges_of(const flatbuffers::Vector<std::uint32_t>* numbers) {
  std::vector<RelayHello::Range> out;
  if (numbers == nullptr) return out;
  require(numbers->size() % 2 == 0, "a range of ranks without its length");
  std::uint32_t next = 0;
  for (flatbuffers::uoffset_t i = 0; i < numbers->size(); i += 2) {
    const RelayHello::Range range{numbers->Get(i), numbers->Get(i + 1)};
    // Written so that first + count is not computed before it is known to be small.
    require(range.first < kMaxWorld && range.count <= kMaxWorld - range.first, "rank out of range");
    // Ascending and without overlaps, so that they are a set, and no more than kMaxWorld of them.
    require(range.count != 0 && range.first >= next, "ranges of ranks that are not in order");
    // At most kMaxWorld, so that it cannot wrap around.
    next = range.first + range.count;
    out.push_back(range);
  }
  return out;
}

// Confirmations: up to which number the messages of a process have arrived. A collector above adds those of
// the node's ranks.
Received received_of(const fb::Received& r) {
  // `next` is one past the last message, which may be number kMaxMessages.
  const auto possible = [](std::uint64_t next) {
    require(next <= kMaxMessages + 1, "more messages than a process can have sent");
    return next;
  };
  Received out{r.source(), possible(r.next()), {}};
  const auto size_of = [](const auto* list) { return list == nullptr ? 0U : list->size(); };
  const std::size_t others = size_of(r.ranks());
  require(size_of(r.sources()) == others && size_of(r.nexts()) == others && others <= Received::kMostOthers,
          "receipts of ranks that are not in pairs");
  for (flatbuffers::uoffset_t i = 0; i < others; ++i) {
    require(r.ranks()->Get(i) < kMaxWorld, "rank out of range");
    out.others.push_back({r.ranks()->Get(i), r.sources()->Get(i), possible(r.nexts()->Get(i))});
  }
  return out;
}

/// In seconds.
double lease_of(double seconds) {
  // NaN fails both comparisons.
  require(seconds >= 0 && seconds <= kMaxLeaseS, "lease out of range");
  return seconds;
}

StopRule rule_of(const fb::StopRule* rule) {
  if (rule == nullptr) return {};
  return {enum_of(rule->kind(), StopRule::Kind::gate_number, "stop rule out of range"), rule->id(),
          rule->count()};
}

// Gate, steps and passed are counters, of which any value is possible; the kind and the level are
// enumerations.
Position position_of(const fb::Position* p) {
  // A missing position is that of a rank that has reported nothing: not holding, emission off.
  if (p == nullptr) return {};
  Position out;
  out.position = {p->holding(), p->gate(), enum_of(p->kind(), GateKind::optimizer, "gate kind out of range"),
                  p->id(), p->steps()};
  out.passed = p->passed();
  out.lease_expirations = p->lease_expirations();
  // -1: emission is off.
  require(p->detail() >= -1 && p->detail() <= static_cast<int>(Detail::kernels), "detail level out of range");
  out.detail = p->detail();
  return out;
}

// The body with most bytes: no allocation per event. `storage`: memory of an earlier batch, whose capacity is
// reused.
Batch batch_of(const fb::Batch& b, std::vector<Event> storage) {
  Batch out;
  // For its memory only; the contents are overwritten below.
  out.events = std::move(storage);
  out.dropped_total = b.dropped_total();
  out.dropped_here = b.dropped_here();
  // Drops of a batch are part of the total.
  require(out.dropped_here <= out.dropped_total, "more events dropped in a batch than in all");
  require(out.dropped_total <= kMaxDropped, "more events dropped than a process can have made");
  out.begin_ns = time_of(b.begin_ns());
  out.end_ns = time_of(b.end_ns());
  out.clock_ns = time_of(b.clock_ns());
  out.clock_realtime_ns = time_of(b.clock_realtime_ns());
  out.clock_error_ns = time_of(b.clock_error_ns());
  // An error bound; a negative one would make intervals that end before they begin.
  require(out.clock_error_ns >= 0, "negative clock error");
  // A struct: present as a whole or absent.
  if (const fb::Relay* r = b.relay(); r != nullptr) {
    out.relay = {r->source_incarnation(), r->source_first(), r->source_last(), r->source_dropped_total(),
                 r->lost_total(),         r->offset_ns(),    r->residual_ns()};
    // Half of the allowed range of timestamps (is_time()): the sum of both fits in 64 bits.
    constexpr std::int64_t kFar = std::int64_t{1} << 61;
    // Numbers of the rank's own messages, including the last one.
    require(r->source_first() <= r->source_last(), "a relayed batch ends before it begins");
    require(r->source_last() <= kMaxMessages && r->lost_total() <= kMaxMessages,
            "more messages than a process can have sent");
    require(r->source_dropped_total() <= kMaxDropped, "more events dropped than a process can have made");
    require(
        r->offset_ns() > -kFar && r->offset_ns() < kFar && r->residual_ns() >= 0 && r->residual_ns() < kFar,
        "a relayed batch's clock is out of range");
  }
  const std::size_t count = b.events() != nullptr ? b.events()->size() : 0;
  require(count <= kMaxBatchEvents, "more events than a batch may hold");
  // Not charged to the budget: events have the same size as in the frame, and kMaxBatchEvents bounds them.
  out.events.resize(count);
  // Copied as bytes: the frame's events need not be aligned.
  if (count != 0)
    std::memcpy(static_cast<void*>(out.events.data()), b.events()->Data(), count * sizeof(Event));
  // No branch per event: batches have thousands, and almost none has an invalid one.
  bool good = true;
  // The meaning of a to v1 depends on the kind: they are not checked here.
  for (const Event& event : out.events) {
    const auto kind = static_cast<std::uint16_t>(event.kind);
    good &= kind >= 1 && kind <= static_cast<std::uint16_t>(kLastEventKind);
    good &= static_cast<std::uint8_t>(event.stream) < kStreamCount;
    good &= is_time(static_cast<std::int64_t>(event.ticks));
  }
  require(good, "an event's kind, stream or time is out of range");
  return out;
}

// Inside a ViewReply: what a viewer shows of a rank. Its counts may be any number.
RankState rank_state_of(const fb::RankState& s) {
  RankState out;
  out.rank = s.rank();
  require(out.rank < kMaxWorld, "rank out of range");
  out.connected = s.connected();
  out.finished = s.finished();
  out.exit_code = s.exit_code();
  out.pid = s.pid();
  out.host = text_of(s.host(), kMaxName, "host");
  out.exit_message = text_of(s.exit_message(), kMaxText, "exit message");
  out.events = s.events();
  out.dropped = s.dropped();
  out.lost_messages = s.lost_messages();
  out.clock_offset_ns = time_of(s.clock_offset_ns());
  out.clock_residual_ns = time_of(s.clock_residual_ns());
  out.last_ns = time_of(s.last_ns());
  out.gate = position_of(s.gate());
  return out;
}

// From the collector to a viewer, and checked as messages from ranks are: another program may have its port.
ViewReply reply_of(const fb::ViewReply& v) {
  ViewReply out;
  out.log = v.log();
  out.static_cursor = v.static_cursor();
  out.cursor = v.cursor();
  out.end_cursor = v.end_cursor();
  out.rank_revision = v.rank_revision();
  out.finished = v.finished();
  out.exit_code = v.exit_code();
  out.pausing = v.pausing();
  out.paused = v.paused();
  out.gate = v.gate();
  out.lease_left_s = lease_of(v.lease_left_s());
  out.note = text_of(v.note(), kMaxText, "note");
  // The verifier counts each reference to a table, which bounds their number; texts are charged to the
  // budget.
  if (v.ranks() != nullptr) {
    for (const fb::RankState* s : *v.ranks()) out.ranks.push_back(rank_state_of(*s));
  }
  if (v.items() != nullptr) {
    for (const fb::ViewItem* i : *v.items()) {
      ViewItem item;
      item.kind = enum_of(i->kind(), ViewItem::Kind::tables, "view item out of range");
      item.rank = i->rank();
      require(item.rank < kMaxWorld, "rank out of range");
      item.id = i->id();
      item.at_ns = time_of(i->at_ns());
      item.severity = enum_of(i->severity(), Severity::error, "severity out of range");
      item.text = text_of(i->text(), kMaxText, "text");
      // Chunks and tables inside are checked where they are decoded; here only their bytes count.
      if (i->data() != nullptr) spend(i->data()->size());
      if (i->data() != nullptr) item.data.assign(i->data()->begin(), i->data()->end());
      out.items.push_back(std::move(item));
    }
  }
  out.receipt = v.receipt();
  out.begin_cursor = v.begin_cursor();
  return out;
}

}  // namespace

// allowed() (wire_decode.cpp) has already rejected the bodies that this channel may not carry, and the
// verifier all offsets outside of the frame. So every accessor here is safe, and only values are checked.
Body body_of(const fb::Frame& f, const Header& header, std::vector<Event> storage) {
  switch (f.body_type()) {
    case fb::Body_Batch:
      return batch_of(*f.body_as_Batch(), std::move(storage));
    case fb::Body_Tables:
      return tables_of(*f.body_as_Tables(), header);
    case fb::Body_Text: {
      const auto& t = *f.body_as_Text();
      // Braces evaluate from left to right, so the first of several invalid fields is reported.
      return Text{time_of(t.at_ns()), enum_of(t.severity(), Severity::error, "severity out of range"),
                  text_of(t.text(), kMaxText, "text")};
    }
    case fb::Body_Name: {
      const auto& n = *f.body_as_Name();
      require(n.id() < kMaxNames, "name id out of range");
      return Name{n.id(), text_of(n.name(), kMaxName, "name")};
    }
    case fb::Body_RunEnd: {
      const auto& n = *f.body_as_RunEnd();
      // As in a batch: it is summed over processes.
      require(n.dropped_total() <= kMaxDropped, "more events dropped than a process can have made");
      return Finish{n.exit_code(), time_of(n.at_ns()), n.dropped_total(),
                    text_of(n.text(), kMaxText, "text")};
    }
    case fb::Body_Hello: {
      const auto& h = *f.body_as_Hello();
      // The rank is in the header: it must be below the world that the process sends.
      require(h.world() >= 1 && h.world() <= kMaxWorld && header.rank < h.world(), "rank not below world");
      return Hello{h.world(), h.pid(), text_of(h.host(), kMaxName, "host"),
                   text_of(h.clock_id(), kMaxName, "clock id"), h.relayed()};
    }
    case fb::Body_RelayHello: {
      const auto& h = *f.body_as_RelayHello();
      RelayHello hello{text_of(h.host(), kMaxName, "host"), text_of(h.clock_id(), kMaxName, "clock id"),
                       ranges_of(h.present()), ranges_of(h.silent()), h.hello_sum()};
      return hello;
    }
    case fb::Body_Ping: {
      const auto& p = *f.body_as_Ping();
      // Both have 16 bits: at most a minute.
      return Ping{p.id(), time_of(p.sent_ns()), p.look_ms(), p.pack_ms(), p.known()};
    }
    // Three times of a round trip; the fourth is that of its arrival (clock_estimator.h).
    case fb::Body_Pong: {
      const auto& p = *f.body_as_Pong();
      return Pong{p.id(), time_of(p.ping_sent_ns()), time_of(p.received_ns()), time_of(p.sent_ns())};
    }
    case fb::Body_RankCommand: {
      const auto& c = *f.body_as_RankCommand();
      RankCommand out;
      out.id = c.id();
      out.kind = enum_of(c.kind(), RankCommand::Kind::keep, "command out of range");
      out.gate = c.gate();
      out.lease_s = lease_of(c.lease_s());
      out.rule = rule_of(c.rule());
      out.detail = enum_of(c.detail(), Detail::kernels, "detail level out of range");
      out.by_step = c.by_step();
      out.request = enum_of(c.request(), Request::stacks, "request out of range");
      out.at_ns = time_of(c.at_ns());
      out.text = text_of(c.text(), kMaxText, "moment");
      out.until_ns = time_of(c.until_ns());
      out.step = c.step();
      out.of_rank = c.of_rank();
      return out;
    }
    case fb::Body_Received: {
      return received_of(*f.body_as_Received());
    }
    case fb::Body_Refusal:
      return Refusal{text_of(f.body_as_Refusal()->why(), kMaxText, "refusal")};
    case fb::Body_Prepared:
      return Prepared{f.body_as_Prepared()->command(), f.body_as_Prepared()->gate(),
                      f.body_as_Prepared()->steps()};
    case fb::Body_Position:
      return position_of(f.body_as_Position());
    // Any numbers: ViewLog::read() limits the cursors to its items.
    case fb::Body_ViewPoll: {
      const auto& p = *f.body_as_ViewPoll();
      return ViewPoll{p.log(), p.static_cursor(), p.cursor(), p.rank_revision(), p.want_items(), p.receipt()};
    }
    case fb::Body_ViewCommand: {
      const auto& c = *f.body_as_ViewCommand();
      return ViewCommand{c.id(), enum_of(c.kind(), ViewCommand::Kind::ask, "command out of range"),
                         rule_of(c.rule()), enum_of(c.detail(), Detail::kernels, "detail level out of range"),
                         enum_of(c.request(), Request::stacks, "request out of range")};
    }
    case fb::Body_ViewReply:
      return reply_of(*f.body_as_ViewReply());
    case fb::Body_NONE:
      break;
  }
  // Not reached: allowed() rejects frames without a body.
  throw BadValue("no body");
}

}  // namespace shardscope::instrumentation::wire
