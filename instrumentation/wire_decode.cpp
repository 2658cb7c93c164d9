// Frames to messages. FlatBuffers' verifier has seen that every offset and vector lies inside the frame. Here
// is what it cannot know: ranges of enumerations, ids and times, counts that must agree with one another, and
// how much memory the message may unpack to. Nothing is returned of a frame with one bad field.
#include <cstring>
#include <stdexcept>

#include "instrumentation/possible_time.h"
#include "instrumentation/schema_generated.h"
#include "instrumentation/table_checks.h"
#include "instrumentation/wire.h"

namespace shardscope::instrumentation::wire {

namespace {

/// Thrown and caught inside decode(): a field holds what no correct sender writes.
struct BadValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `what` is a literal: the text costs nothing where all is well.
void require(bool good, const char* what) {
  if (!good) throw BadValue(what);
}

/// What one frame may still make us copy. A damaged or hostile frame can name the same string millions of
/// times; no honest one unpacks to much more than its own size.
thread_local std::size_t t_budget = 0;

// Before the copy is made, so that a frame can never ask for much more memory than its budget.
void spend(std::size_t bytes) {
  if (bytes > t_budget) throw BadValue("the message unpacks to far more than its size");
  t_budget -= bytes;
}

/// First and count of each, in ascending order.
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

Received received_of(const fb::Received& r) {
  // `next` is behind the last message, which may be number kMaxMessages.
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

std::string text_of(const flatbuffers::String* s, std::size_t limit, const char* what) {
  // FlatBuffers leaves out what is empty or was not known to an older writer.
  if (s == nullptr) return {};
  // Charged first: a text above its limit is refused either way.
  spend(s->size());
  if (s->size() > limit)
    throw BadValue(std::string(what) + " has " + std::to_string(s->size()) + " bytes, at most " +
                   std::to_string(limit) + " are allowed");
  return s->str();
}

template <typename Enum>
// Of enumerations that count from 0 without holes. A cast of a number beyond would be a value that no switch
// knows.
Enum enum_of(int value, Enum last, const char* what) {
  require(value >= 0 && value <= static_cast<int>(last), what);
  return static_cast<Enum>(value);
}

std::int64_t time_of(std::int64_t ns) {
  require(is_time(ns), "a time is out of range");
  return ns;
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

Position position_of(const fb::Position* p) {
  // A position that is not sent is that of a rank that has said nothing: not holding, emission off.
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

Batch batch_of(const fb::Batch& b, std::vector<Event> storage) {
  Batch out;
  // Memory only; what it holds is written over below.
  out.events = std::move(storage);
  out.dropped_total = b.dropped_total();
  out.dropped_here = b.dropped_here();
  // What is dropped here is a part of all that was.
  require(out.dropped_here <= out.dropped_total, "more events dropped in a batch than in all");
  require(out.dropped_total <= kMaxDropped, "more events dropped than a process can have made");
  out.begin_ns = time_of(b.begin_ns());
  out.end_ns = time_of(b.end_ns());
  out.clock_ns = time_of(b.clock_ns());
  out.clock_realtime_ns = time_of(b.clock_realtime_ns());
  out.clock_error_ns = time_of(b.clock_error_ns());
  // A bound of an error; a negative one would make intervals that end before they begin.
  require(out.clock_error_ns >= 0, "negative clock error");
  // A struct: it is there whole or not at all.
  if (const fb::Relay* r = b.relay(); r != nullptr) {
    out.relay = {r->source_incarnation(), r->source_first(), r->source_last(), r->source_dropped_total(),
                 r->lost_total(),         r->offset_ns(),    r->residual_ns()};
    // Half of what a time may be (is_time()): the sum of both stays within 64 bits.
    constexpr std::int64_t kFar = std::int64_t{1} << 61;
    // Numbers of the rank's own messages, the last one included.
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
  // Not charged to the budget: events are as long here as in the frame, and kMaxBatchEvents bounds them.
  out.events.resize(count);
  // Copied as bytes: the frame's events need not be aligned.
  if (count != 0)
    std::memcpy(static_cast<void*>(out.events.data()), b.events()->Data(), count * sizeof(Event));
  // Without a branch for each event: thousands of a batch are looked at, and next to no batch has a bad one.
  bool good = true;
  // What a to v1 mean depends on the kind: they are not looked at here.
  for (const Event& event : out.events) {
    const auto kind = static_cast<std::uint16_t>(event.kind);
    good &= kind >= 1 && kind <= static_cast<std::uint16_t>(kLastEventKind);
    good &= static_cast<std::uint8_t>(event.stream) < kStreamCount;
    good &= is_time(static_cast<std::int64_t>(event.ticks));
  }
  require(good, "an event's kind, stream or time is out of range");
  return out;
}

// Any length within the budget: what the ids may be is looked at by what_is_wrong().
std::vector<std::uint32_t> ids_of(const flatbuffers::Vector<std::uint32_t>* v) {
  if (v == nullptr) return {};
  spend(v->size() * sizeof(std::uint32_t));
  return {v->begin(), v->end()};
}

/// What a rank says of itself beside the lists that are the same on every rank.
void take_own(const fb::Tables& t, RunTables& r) {
  r.framework = text_of(t.framework(), kMaxText, "framework");
  r.records = t.records();
  // Each list is bounded before it is read: an entry takes much more memory than the few bytes that name it
  // in the frame.
  if (t.not_recorded() != nullptr) {
    require(t.not_recorded()->size() <= kMaxNotRecorded, "more reasons than supported");
    for (const fb::NotRecorded* lack : *t.not_recorded())
      r.not_recorded.push_back({lack->what(), text_of(lack->why(), kMaxText, "reason")});
  }
  if (t.models() != nullptr) {
    require(t.models()->size() <= kMaxModels, "more models than supported");
    for (const fb::Model* m : *t.models()) {
      r.models.push_back(
          {m->id(), text_of(m->name(), kMaxText, "model"), text_of(m->role(), kMaxName, "role")});
    }
  }
  if (t.groups() != nullptr) {
    require(t.groups()->size() <= kMaxGroups, "more groups than supported");
    for (const fb::Group* g : *t.groups()) {
      r.groups.push_back({g->id(), text_of(g->name(), kMaxText, "group"),
                          enum_of(g->purpose(), GroupPurpose::expert, "purpose of a group out of range"),
                          ids_of(g->ranks())});
    }
  }
  if (t.lanes() != nullptr) {
    require(t.lanes()->size() <= kStreamCount, "more lanes than there are");
    for (const fb::LaneName* lane : *t.lanes()) {
      // Before the cast to StreamId, which indexes tables of this length.
      require(lane->lane() < kStreamCount, "lane out of range");
      r.lanes.push_back({static_cast<StreamId>(lane->lane()), text_of(lane->name(), kMaxName, "lane")});
    }
  }
  if (t.param_groups() != nullptr) {
    require(t.param_groups()->size() <= kMaxParamGroups, "more parameter groups than supported");
    for (const fb::ParamGroup* g : *t.param_groups()) {
      r.param_groups.push_back({text_of(g->name(), kMaxName, "parameter group"), g->lr(), g->beta1(),
                                g->beta2(), g->eps(), g->weight_decay(), ids_of(g->params())});
    }
  }
  // After the slices, which they are of. More than one of the same slice is harmless: the last one counts.
  if (t.strides() != nullptr) {
    for (std::size_t i = 0; i < t.strides()->size(); ++i) {
      fb::Stride s;
      std::memcpy(static_cast<void*>(&s), t.strides()->Data() + i * sizeof s, sizeof s);
      require(s.slice() < r.slices.size(), "a stride is of no slice");
      r.slices[s.slice()].block_elems = s.block_elems();
      r.slices[s.slice()].stride_elems = s.stride_elems();
    }
  }
}

Tables tables_of(const fb::Tables& t, const Header& header) {
  Tables out;
  RunTables& r = out.tables;
  // A frame has one run and one rank, those of its header.
  r.run_id = header.run_id;
  r.rank = header.rank;
  r.world = t.world();
  r.local_world = t.local_world();
  r.stage = t.stage();
  r.pid = t.pid();
  r.elems = t.elems();
  r.param_bytes = t.param_bytes();
  r.grad_bytes = t.grad_bytes();
  r.master_bytes = t.master_bytes();
  // Numbers are taken as they are and looked at all together by what_is_wrong(), which reads of recordings
  // share.
  r.link_gbps = t.link_gbps();
  r.link_latency_us = t.link_latency_us();
  r.simulated = t.simulated();
  r.model = text_of(t.model(), kMaxText, "model");
  r.device = text_of(t.device(), kMaxText, "device");
  r.hardware = text_of(t.hardware(), kMaxText, "hardware");
  r.versions = text_of(t.versions(), kMaxText, "versions");
  r.config_json = text_of(t.config_json(), kMaxConfig, "configuration");
  r.host = text_of(t.host(), kMaxName, "host");
  const std::size_t modules = t.modules() != nullptr ? t.modules()->size() : 0;
  const std::size_t params = t.params() != nullptr ? t.params()->size() : 0;
  // Before reserve(), which would else ask for what a false count says.
  require(modules <= kMaxModules, "more modules than supported");
  require(params <= kMaxParams, "more parameters than supported");
  r.modules.reserve(modules);
  for (std::size_t i = 0; i < modules; ++i) {
    const fb::Module* m = t.modules()->Get(static_cast<flatbuffers::uoffset_t>(i));
    ModuleInfo info{m->id(),
                    m->parent(),
                    text_of(m->path(), kMaxText, "module path"),
                    text_of(m->type(), kMaxName, "module type"),
                    ids_of(m->params()),
                    m->hooks(),
                    m->model()};
    r.modules.push_back(std::move(info));
  }
  r.params.reserve(params);
  for (std::size_t i = 0; i < params; ++i) {
    const fb::Param* p = t.params()->Get(static_cast<flatbuffers::uoffset_t>(i));
    ParamInfo info;
    info.id = p->id();
    info.name = text_of(p->name(), kMaxText, "parameter name");
    info.dtype = text_of(p->dtype(), kMaxName, "dtype");
    if (p->shape() != nullptr && p->shape()->size() != 0) {
      require(p->shape()->size() <= 16, "a parameter has more than 16 dimensions");
      // The verifier asks for room, not for alignment, of what a vector holds.
      // At most 16 numbers: nothing to charge to the budget.
      info.shape.resize(p->shape()->size());
      std::memcpy(info.shape.data(), p->shape()->Data(), info.shape.size() * sizeof(std::int64_t));
    }
    info.elems = p->elems();
    info.shard_elems = p->shard_elems();
    info.padding_elems = p->padding_elems();
    info.modules = ids_of(p->modules());
    info.persistent = p->persistent();
    info.frozen = p->frozen();
    r.params.push_back(std::move(info));
  }
  if (t.slices() != nullptr) {
    // The verifier has seen that this number of structs lies in the frame: one of 40 bytes there is one of 56
    // here.
    r.slices.reserve(t.slices()->size());
    for (std::size_t i = 0; i < t.slices()->size(); ++i) {
      // Copied for its alignment, as the shapes above.
      fb::Slice s;
      std::memcpy(static_cast<void*>(&s), t.slices()->Data() + i * sizeof s, sizeof s);
      r.slices.push_back(
          {s.param(), s.rank(), s.param_offset(), s.shard_offset(), s.elems(), s.padding_elems(), 0, 0});
    }
  }
  take_own(t, r);
  // Last: it compares lists with one another.
  if (const char* wrong = what_is_wrong(r)) throw BadValue(wrong);
  return out;
}

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
  // The verifier counts a table as often as it is named, which bounds their number; texts are charged to the
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
      // Chunks and tables inside have checks of their own where they are read; here only their bytes count.
      if (i->data() != nullptr) spend(i->data()->size());
      if (i->data() != nullptr) item.data.assign(i->data()->begin(), i->data()->end());
      out.items.push_back(std::move(item));
    }
  }
  out.receipt = v.receipt();
  out.begin_cursor = v.begin_cursor();
  return out;
}

// Batch to RunEnd are neighbours in the schema's union: a body that is put between them would be allowed
// here.
bool allowed(fb::Body body, From from) noexcept {
  switch (from) {
    case From::rank_publish:
      return body >= fb::Body_Batch && body <= fb::Body_RunEnd;
    // Of the rank's process, or of a node's collector in its place.
    case From::rank_control:
      return body == fb::Body_Hello || body == fb::Body_Pong || body == fb::Body_Prepared ||
             body == fb::Body_Position || body == fb::Body_RelayHello;
    case From::collector_control:
      return body == fb::Body_Ping || body == fb::Body_RankCommand || body == fb::Body_Received ||
             body == fb::Body_Refusal;
    case From::viewer:
      // A text asks to keep a moment: app/collector/moment_request.h.
      return body == fb::Body_ViewPoll || body == fb::Body_ViewCommand || body == fb::Body_Text;
    case From::collector_view:
      return body == fb::Body_ViewReply;
  }
  return false;
}

Body body_of(const fb::Frame& f, const Header& header, std::vector<Event> storage) {
  switch (f.body_type()) {
    case fb::Body_Batch:
      return batch_of(*f.body_as_Batch(), std::move(storage));
    case fb::Body_Tables:
      return tables_of(*f.body_as_Tables(), header);
    case fb::Body_Text: {
      const auto& t = *f.body_as_Text();
      // In braces the members are made from left to right, so that of several bad fields the first is named.
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
      // As of a batch: sums over processes are made of it.
      require(n.dropped_total() <= kMaxDropped, "more events dropped than a process can have made");
      return Finish{n.exit_code(), time_of(n.at_ns()), n.dropped_total(),
                    text_of(n.text(), kMaxText, "text")};
    }
    case fb::Body_Hello: {
      const auto& h = *f.body_as_Hello();
      // The rank is the header's: both must fit the world that the process says it is in.
      require(h.world() >= 1 && h.world() <= kMaxWorld && header.rank < h.world(), "rank not below world");
      return Hello{h.world(), h.pid(), text_of(h.host(), kMaxName, "host"),
                   text_of(h.clock_id(), kMaxName, "clock id"), h.relayed()};
    }
    case fb::Body_RelayHello: {
      const auto& h = *f.body_as_RelayHello();
      RelayHello hello{text_of(h.host(), kMaxName, "host"), text_of(h.clock_id(), kMaxName, "clock id"),
                       ranges_of(h.present()), ranges_of(h.silent())};
      return hello;
    }
    case fb::Body_Ping: {
      const auto& p = *f.body_as_Ping();
      // Both have 16 bits: a minute at most.
      return Ping{p.id(), time_of(p.sent_ns()), p.look_ms(), p.pack_ms()};
    }
    case fb::Body_Pong: {
      const auto& p = *f.body_as_Pong();
      return Pong{p.id(), time_of(p.ping_sent_ns()), time_of(p.received_ns()), time_of(p.sent_ns())};
    }
    case fb::Body_RankCommand: {
      const auto& c = *f.body_as_RankCommand();
      RankCommand out;
      out.id = c.id();
      out.kind = enum_of(c.kind(), RankCommand::Kind::ask, "command out of range");
      out.gate = c.gate();
      out.lease_s = lease_of(c.lease_s());
      out.rule = rule_of(c.rule());
      out.detail = enum_of(c.detail(), Detail::kernels, "detail level out of range");
      out.by_step = c.by_step();
      out.request = enum_of(c.request(), Request::stacks, "request out of range");
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
    // Any numbers: ViewLog::read() bounds the cursors by what it has.
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
  // Not reached: allowed() lets no frame without a body through.
  throw BadValue("no body");
}

Decoded rejected(Reject reject, std::string why) { return {std::nullopt, reject, std::move(why)}; }

}  // namespace

const char* name_of(Reject reject) noexcept {
  switch (reject) {
    case Reject::none:
      return "none";
    case Reject::size:
      return "size";
    case Reject::garbage:
      return "garbage";
    case Reject::version:
      return "version";
    case Reject::body:
      return "body";
    case Reject::value:
      return "value";
  }
  return "unknown";
}

Decoded decode(const void* data, std::size_t bytes, From from, std::vector<Event> storage) {
  // Only publishers send tables, and only a collector answers a viewer with them: what others send is small.
  const bool large = from == From::rank_publish || from == From::collector_view;
  const std::size_t limit = large ? kMaxFrameBytes : kMaxControlBytes;
  if (bytes > limit) {
    return rejected(Reject::size,
                    std::to_string(bytes) + " bytes, at most " + std::to_string(limit) + " are accepted");
  }
  // The identifier, at bytes 4 to 8, is read before the verifier has seen the frame.
  if (bytes < 16) return rejected(Reject::size, "only " + std::to_string(bytes) + " bytes");
  // FlatBuffers reads scalars in place; a socket's buffer may lie anywhere.
  // Of 64-bit words: the vector's memory is aligned as the frame has to be.
  std::vector<std::uint64_t> large_copy;
  const auto* base = static_cast<const std::uint8_t*>(data);
  // Sizes of scalars are at most 8 bytes: an address that 8 divides is right for each that FlatBuffers has
  // aligned.
  if (reinterpret_cast<std::uintptr_t>(base) % alignof(std::uint64_t) != 0) {
    // Batches come one after another: they share a copy that is kept. Tables are rare.
    thread_local std::vector<std::uint64_t> kept_copy;
    // A batch of any size that a rank sends fits (FrameMemory::kBlockBytes); a copy of large tables is not
    // kept by the thread.
    constexpr std::size_t kKept = std::size_t{1} << 19;
    std::vector<std::uint64_t>& aligned = bytes <= kKept ? kept_copy : large_copy;
    // Grows only: bytes of an earlier, longer frame stay behind the end and are not looked at.
    if (aligned.size() * sizeof(std::uint64_t) < bytes) aligned.resize((bytes + 7) / 8);
    std::memcpy(aligned.data(), data, bytes);
    base = reinterpret_cast<const std::uint8_t*>(aligned.data());
  }
  if (!flatbuffers::BufferHasIdentifier(base, fb::FrameIdentifier())) {
    return rejected(Reject::garbage, "not a Shardscope message");
  }
  // 16 levels and 8 million tables: nothing in the schema is nested so deep, and the tables of the largest
  // model are fewer (kMaxModules, kMaxParams).
  flatbuffers::Verifier verifier(base, bytes, 16, 8'000'000);
  if (!fb::VerifyFrameBuffer(verifier)) return rejected(Reject::garbage, "the message is damaged");
  // Read in place, without a copy, for as long as `base` is there: what is kept of it is copied by body_of().
  const fb::Frame& frame = *fb::GetFrame(base);
  // After the verifier, so that reading it is safe; before the body, of which another version may mean
  // something else.
  if (frame.version() != kVersion) {
    return rejected(Reject::version, "protocol version " + std::to_string(frame.version()) +
                                         ", this program speaks " + std::to_string(kVersion) +
                                         "; use the same Shardscope release on both sides");
  }
  if (frame.body() == nullptr || !allowed(frame.body_type(), from)) {
    return rejected(Reject::body,
                    "a message of kind " + std::to_string(frame.body_type()) + " does not belong here");
  }
  // Honest tables unpack to about their size: strings that are shared in the frame are copies here, hence the
  // factor. The constant is for small frames.
  t_budget = 4 * bytes + (1U << 16);
  try {
    Message message;
    message.header.rank = frame.rank();
    require(message.header.rank < kMaxWorld, "rank out of range");
    message.header.incarnation = frame.incarnation();
    message.header.sequence = frame.sequence();
    require(message.header.sequence <= kMaxMessages, "more messages than a process can have sent");
    message.header.run_id = text_of(frame.run_id(), kMaxName, "run id");
    // The header first: a Hello and tables are checked against it.
    message.body = body_of(frame, message.header, std::move(storage));
    return {std::move(message), Reject::none, {}};
  } catch (const BadValue& bad) {
    return rejected(Reject::value, bad.what());
  }
}

}  // namespace shardscope::instrumentation::wire
