// Messages to frames. FlatBuffers writes a buffer from its end, children first: every string and vector of a
// table is made before the table itself, which determines the order of the calls here. Types of modules and
// parameters repeat, so each is written once (CreateSharedString). Events are one vector of 40-byte structs
// with the layout of Event: they are copied without conversion.
#include <cstring>

#include "instrumentation/frame_memory.h"
#include "instrumentation/schema_generated.h"
#include "instrumentation/wire.h"
#include "instrumentation/wire_frame.h"

namespace shardscope::instrumentation::wire {

namespace {

using Builder = flatbuffers::FlatBufferBuilder;
using Offset = flatbuffers::Offset<void>;

// Offsets of the fields follow from both being without padding; EventRecord is in the order of Event's
// members.
static_assert(sizeof(fb::EventRecord) == sizeof(Event) && alignof(fb::EventRecord) == alignof(Event));
static_assert(FLATBUFFERS_LITTLEENDIAN, "events are copied as they lie in memory");

// Enumerations are encoded as their numbers; decode() checks the range.
flatbuffers::Offset<fb::StopRule> rule_of(Builder& b, const StopRule& rule) {
  return fb::CreateStopRule(b, static_cast<std::uint8_t>(rule.kind), rule.id, rule.count);
}

// In the order of the schema, which differs from that of the struct: CreatePosition() is positional.
flatbuffers::Offset<fb::Position> position_of(Builder& b, const Position& p) {
  return fb::CreatePosition(b, p.position.holding, p.position.number,
                            static_cast<std::uint8_t>(p.position.kind), p.position.id, p.passed,
                            p.lease_expirations, p.detail, p.position.steps);
}

/// One overload per body: builds it and returns its offset and type.
// At most one string or vector is made within an argument list: with two, the compiler would choose the order
// in which they are written, and so the bytes.
struct Encode {
  Builder& b;
  fb::Body type = fb::Body_NONE;

  Offset operator()(const Batch& m) {
    type = fb::Body_Batch;
    // One copy of all of them.
    const auto events =
        b.CreateVectorOfStructs(reinterpret_cast<const fb::EventRecord*>(m.events.data()), m.events.size());
    // A struct and not a table: it lies inside the batch, and a null pointer leaves it out.
    fb::Relay relay;
    if (m.relay) {
      relay = fb::Relay(m.relay->source_incarnation, m.relay->source_first, m.relay->source_last,
                        m.relay->source_dropped_total, m.relay->lost_total, m.relay->offset_ns,
                        m.relay->residual_ns);
    }
    return fb::CreateBatch(b, m.dropped_total, m.dropped_here, m.begin_ns, m.end_ns, m.clock_ns,
                           m.clock_realtime_ns, m.clock_error_ns, events, m.relay ? &relay : nullptr)
        .Union();
  }
  // run_id and rank are not written: a reader takes them from the frame's header.
  Offset operator()(const Tables& m) {
    type = fb::Body_Tables;
    const RunTables& t = m.tables;
    std::vector<flatbuffers::Offset<fb::Module>> modules;
    modules.reserve(t.modules.size());
    for (const ModuleInfo& module : t.modules) {
      const auto path = b.CreateString(module.path);
      // A model has few types of modules and one or two of elements: shared strings keep the tables of a
      // large model small.
      const auto kind = b.CreateSharedString(module.type);
      modules.push_back(fb::CreateModule(b, module.id, module.parent, path, kind,
                                         b.CreateVector(module.params), module.hooks, module.model));
    }
    std::vector<flatbuffers::Offset<fb::Param>> params;
    params.reserve(t.params.size());
    for (const ParamInfo& param : t.params) {
      const auto name = b.CreateString(param.name);
      const auto dtype = b.CreateSharedString(param.dtype);
      const auto shape = b.CreateVector(param.shape);
      params.push_back(fb::CreateParam(b, param.id, name, dtype, shape, param.elems, param.shard_elems,
                                       param.padding_elems, b.CreateVector(param.modules), param.persistent,
                                       param.frozen));
    }
    // Structs, so that a list of them is one vector without offsets: 40 bytes per slice, and there may be
    // ranks times parameters of them.
    std::vector<fb::Slice> slices;
    slices.reserve(t.slices.size());
    std::vector<fb::Stride> strides;
    for (const SliceInfo& slice : t.slices) {
      // Refers to the slice by its index: most runs have no strides, and older readers ignore this
      // list.
      if (slice.block_elems != 0) {
        strides.emplace_back(static_cast<std::uint32_t>(slices.size()), slice.block_elems,
                             slice.stride_elems);
      }
      slices.emplace_back(slice.param, slice.rank, slice.param_offset, slice.shard_offset, slice.elems,
                          slice.padding_elems);
    }
    // Comma-separated declarators are evaluated from left to right: these have a fixed order too.
    const auto model = b.CreateString(t.model), device = b.CreateString(t.device),
               hardware = b.CreateString(t.hardware), versions = b.CreateString(t.versions),
               config = b.CreateString(t.config_json), host = b.CreateString(t.host);
    const auto module_vector = b.CreateVector(modules);
    const auto param_vector = b.CreateVector(params);
    const auto slice_vector = b.CreateVectorOfStructs(slices);
    // Before the table is started: nothing else may be built while one is open.
    const Own own = own_of(t);
    // In the order of the schema: new fields are added at the end there, and so here.
    return fb::CreateTables(b, t.world, t.local_world, t.stage, t.pid, t.elems, t.param_bytes, t.grad_bytes,
                            t.master_bytes, t.link_gbps, t.link_latency_us, t.simulated, model, device,
                            hardware, versions, config, host, module_vector, param_vector, slice_vector,
                            own.framework, t.records, own.not_recorded, own.models, own.groups, own.lanes,
                            b.CreateVectorOfStructs(strides), own.param_groups)
        .Union();
  }
  /// The fields of a rank that are not lists common to all ranks.
  struct Own {
    flatbuffers::Offset<flatbuffers::String> framework;
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::NotRecorded>>> not_recorded;
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Model>>> models;
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Group>>> groups;
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::LaneName>>> lanes;
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::ParamGroup>>> param_groups;
  };
  Own own_of(const RunTables& t) {
    Own own;
    own.framework = b.CreateString(t.framework);
    // Offsets of the children are collected first, then their vector: a vector of tables holds only offsets.
    std::vector<flatbuffers::Offset<fb::NotRecorded>> lacks;
    for (const NotRecorded& lack : t.not_recorded)
      lacks.push_back(fb::CreateNotRecorded(b, lack.what, b.CreateString(lack.why)));
    own.not_recorded = b.CreateVector(lacks);
    std::vector<flatbuffers::Offset<fb::Model>> models;
    for (const ModelInfo& model : t.models) {
      const auto name = b.CreateString(model.name);
      models.push_back(fb::CreateModel(b, model.id, name, b.CreateString(model.role)));
    }
    own.models = b.CreateVector(models);
    std::vector<flatbuffers::Offset<fb::Group>> groups;
    for (const GroupInfo& group : t.groups) {
      const auto name = b.CreateString(group.name);
      groups.push_back(fb::CreateGroup(b, group.id, name, static_cast<std::uint8_t>(group.purpose),
                                       b.CreateVector(group.ranks)));
    }
    own.groups = b.CreateVector(groups);
    std::vector<flatbuffers::Offset<fb::LaneName>> lanes;
    for (const LaneName& lane : t.lanes)
      lanes.push_back(fb::CreateLaneName(b, static_cast<std::uint8_t>(lane.lane), b.CreateString(lane.name)));
    own.lanes = b.CreateVector(lanes);
    std::vector<flatbuffers::Offset<fb::ParamGroup>> param_groups;
    for (const ParamGroupInfo& group : t.param_groups) {
      const auto name = b.CreateString(group.name);
      param_groups.push_back(fb::CreateParamGroup(b, name, group.lr, group.beta1, group.beta2, group.eps,
                                                  group.weight_decay, b.CreateVector(group.params)));
    }
    own.param_groups = b.CreateVector(param_groups);
    return own;
  }
  Offset operator()(const Text& m) {
    type = fb::Body_Text;
    return fb::CreateText(b, m.at_ns, static_cast<std::uint8_t>(m.severity), b.CreateString(m.text)).Union();
  }
  // Sent once per name; events refer to it by its id.
  Offset operator()(const Name& m) {
    type = fb::Body_Name;
    return fb::CreateName(b, m.id, b.CreateString(m.name)).Union();
  }
  Offset operator()(const Finish& m) {
    type = fb::Body_RunEnd;
    return fb::CreateRunEnd(b, m.exit_code, m.at_ns, m.dropped_total, b.CreateString(m.text)).Union();
  }
  Offset operator()(const Hello& m) {
    type = fb::Body_Hello;
    // Separate from the clock's id: one string among the arguments, as above.
    const auto host = b.CreateString(m.host);
    return fb::CreateHello(b, m.world, m.pid, host, b.CreateString(m.clock_id), m.relayed).Union();
  }
  Offset operator()(const RelayHello& m) {
    type = fb::Body_RelayHello;
    const auto host = b.CreateString(m.host);
    const auto clock_id = b.CreateString(m.clock_id);
    // First and count of each range; ranges_of() in the decoder is the inverse.
    const auto flat = [this](const std::vector<RelayHello::Range>& ranges) {
      std::vector<std::uint32_t> numbers;
      for (const RelayHello::Range& range : ranges) numbers.insert(numbers.end(), {range.first, range.count});
      return b.CreateVector(numbers);
    };
    const auto present = flat(m.present), silent = flat(m.silent);
    return fb::CreateRelayHello(b, host, clock_id, present, silent, m.hello_sum).Union();
  }
  Offset operator()(const Ping& m) {
    type = fb::Body_Ping;
    return fb::CreatePing(b, m.id, m.sent_ns, m.look_ms, m.pack_ms, m.known).Union();
  }
  // The ping's own time goes back with it, so that the collector needs no table of open pings.
  Offset operator()(const Pong& m) {
    type = fb::Body_Pong;
    return fb::CreatePong(b, m.id, m.ping_sent_ns, m.received_ns, m.sent_ns).Union();
  }
  // Fields that a kind of command does not use have their defaults, which take no bytes.
  Offset operator()(const RankCommand& m) {
    type = fb::Body_RankCommand;
    const auto text = m.text.empty() ? flatbuffers::Offset<flatbuffers::String>() : b.CreateString(m.text);
    return fb::CreateRankCommand(b, m.id, static_cast<std::uint8_t>(m.kind), m.gate, m.lease_s,
                                 rule_of(b, m.rule), static_cast<std::int8_t>(m.detail), m.by_step,
                                 static_cast<std::uint8_t>(m.request), m.at_ns, text, m.until_ns, m.step,
                                 m.of_rank)
        .Union();
  }
  Offset operator()(const Received& m) {
    type = fb::Body_Received;
    if (m.others.empty()) return fb::CreateReceived(b, m.source, m.next).Union();
    // Three parallel lists and not a list of tables: 20 bytes per rank, without an offset and a vtable for
    // each. received_of() in the decoder is the inverse.
    std::vector<std::uint32_t> ranks;
    std::vector<std::uint64_t> sources, nexts;
    for (const Received::OfRank& other : m.others) {
      ranks.push_back(other.rank);
      sources.push_back(other.source);
      nexts.push_back(other.next);
    }
    return fb::CreateReceivedDirect(b, m.source, m.next, &ranks, &sources, &nexts).Union();
  }
  Offset operator()(const Refusal& m) {
    type = fb::Body_Refusal;
    const auto why = b.CreateString(m.why);
    return fb::CreateRefusal(b, why).Union();
  }
  Offset operator()(const Prepared& m) {
    type = fb::Body_Prepared;
    return fb::CreatePrepared(b, m.command, m.gate, m.steps).Union();
  }
  Offset operator()(const Position& m) {
    type = fb::Body_Position;
    return position_of(b, m).Union();
  }
  Offset operator()(const ViewPoll& m) {
    type = fb::Body_ViewPoll;
    return fb::CreateViewPoll(b, m.log, m.static_cursor, m.cursor, m.rank_revision, m.want_items, m.receipt)
        .Union();
  }
  Offset operator()(const ViewCommand& m) {
    type = fb::Body_ViewCommand;
    return fb::CreateViewCommand(b, m.id, static_cast<std::uint8_t>(m.kind), rule_of(b, m.rule),
                                 static_cast<std::int8_t>(m.detail), static_cast<std::uint8_t>(m.request))
        .Union();
  }
  // Chunks in it are encoded already: they are copied as bytes.
  Offset operator()(const ViewReply& m) {
    type = fb::Body_ViewReply;
    std::vector<flatbuffers::Offset<fb::RankState>> ranks;
    for (const RankState& r : m.ranks) {
      const auto host = b.CreateString(r.host), exit_message = b.CreateString(r.exit_message);
      ranks.push_back(fb::CreateRankState(
          b, r.rank, r.connected, r.finished, r.exit_code, r.pid, host, exit_message, r.events, r.dropped,
          r.lost_messages, r.clock_offset_ns, r.clock_residual_ns, r.last_ns, position_of(b, r.gate)));
    }
    std::vector<flatbuffers::Offset<fb::ViewItem>> items;
    for (const ViewItem& i : m.items) {
      const auto text = b.CreateString(i.text);
      // data: its meaning depends on the kind; here it is opaque.
      items.push_back(fb::CreateViewItem(b, static_cast<std::uint8_t>(i.kind), i.rank, i.id, i.at_ns,
                                         static_cast<std::uint8_t>(i.severity), text,
                                         b.CreateVector(i.data)));
    }
    // Children before the reply: ranks and items are complete here, and each list holds offsets of written
    // tables.
    const auto note = b.CreateString(m.note);
    const auto rank_vector = b.CreateVector(ranks);
    const auto item_vector = b.CreateVector(items);
    return fb::CreateViewReply(b, m.log, m.static_cursor, m.cursor, m.end_cursor, m.rank_revision, m.finished,
                               m.exit_code, m.pausing, m.paused, m.gate, m.lease_left_s, note, rank_vector,
                               item_vector, m.receipt, m.begin_cursor)
        .Union();
  }
};

}  // namespace

// Out of line: Buffer is incomplete in the header.
Frame::Frame() = default;
Frame::~Frame() = default;
Frame::Frame(Frame&&) noexcept = default;
Frame& Frame::operator=(Frame&&) noexcept = default;
// A moved-from frame has no buffer and 0 bytes.
const std::uint8_t* Frame::data() const noexcept { return buffer_ ? buffer_->bytes.data() : nullptr; }
std::size_t Frame::size() const noexcept { return buffer_ ? buffer_->bytes.size() : 0; }

Frame encode(const Message& message) {
  // Estimated, so that a batch is not moved to a larger block while it is written: a builder grows by
  // copying.
  std::size_t expected = 1024;
  if (const auto* batch = std::get_if<Batch>(&message.body)) expected += batch->events.size() * sizeof(Event);
  Builder builder(expected, &FrameMemory::instance());
  const auto run_id = builder.CreateString(message.header.run_id);
  Encode visitor{builder};
  // The visitor sets the type besides returning the offset: a union needs both.
  const Offset body = std::visit(visitor, message.body);
  // With the file identifier, by which decode() rejects other data.
  fb::FinishFrameBuffer(
      builder, fb::CreateFrame(builder, kVersion, message.header.rank, message.header.incarnation,
                               message.header.sequence, run_id, visitor.type, body, message.header.source,
                               message.header.source_next));
  Frame frame;
  frame.buffer_ = std::make_unique<Frame::Buffer>();
  // Released without a copy; the allocator reuses it when the frame is freed, on any thread.
  frame.buffer_->bytes = builder.Release();
  return frame;
}

}  // namespace shardscope::instrumentation::wire
