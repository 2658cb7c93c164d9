// Encoding, and above all what decoding refuses.
#include "instrumentation/wire.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "instrumentation/frame_memory.h"
#include "instrumentation/schema_generated.h"
#include "instrumentation/sockets.h"

namespace shardscope::instrumentation::wire {
namespace {

Message batch_message(std::size_t events) {
  Batch batch;
  batch.dropped_total = 17;
  batch.dropped_here = 3;
  batch.begin_ns = 1000;
  batch.end_ns = 2000;
  batch.clock_ns = 2001;
  batch.clock_error_ns = 40;
  for (std::size_t i = 0; i < events; ++i) {
    Event event;
    event.ticks = 1000 + i;
    event.kind = static_cast<EventKind>(1 + i % static_cast<std::size_t>(kLastEventKind));
    event.stream = static_cast<StreamId>(i % kStreamCount);
    event.code = static_cast<std::uint8_t>(i);
    event.a = static_cast<std::uint32_t>(i * 3);
    event.b = static_cast<std::uint32_t>(i * 5);
    event.c = static_cast<std::uint32_t>(i * 7);
    event.v0 = static_cast<std::int64_t>(i) * -11;
    event.v1 = static_cast<std::int64_t>(i) << 33;
    batch.events.push_back(event);
  }
  Message message;
  message.header.rank = 2;
  message.header.incarnation = 0xABCDEF;
  message.header.sequence = 41;
  message.header.run_id = "run-1";
  message.body = std::move(batch);
  return message;
}

TEST(Events, TheLastKindIsTheLast) {
  for (std::uint16_t k = 1; k <= static_cast<std::uint16_t>(kLastEventKind); ++k) {
    EXPECT_STRNE(name_of(static_cast<EventKind>(k)), "unknown") << k;
  }
  EXPECT_STREQ(name_of(static_cast<EventKind>(static_cast<std::uint16_t>(kLastEventKind) + 1)), "unknown");
}

RunTables example_tables() {
  RunTables t;
  t.run_id = "run-1";
  t.rank = 1;
  t.world = 4;
  t.local_world = 2;
  t.stage = 3;
  t.pid = 4711;
  t.elems = 123;
  t.param_bytes = 2;
  t.master_bytes = 4;
  t.link_gbps = 12.5;
  t.simulated = true;
  t.model = "gpt-mini";
  t.config_json = R"({"a": 1})";
  t.host = "node-1";
  t.modules = {{0, kNoId, "", "GPT", {}, true}, {1, 0, "wte", "Embedding", {0, 1}, false}};
  t.params = {{0, "wte.weight", "bf16", {256, 64}, 16384, 4096, 0, {1}, true},
              {1, "b", "bf16", {3}, 3, 1, 1, {1, 0}, false}};
  t.slices = {{0, 0, 0, 0, 4096, 0}, {1, 3, 2, 4096, 1, 1}};
  return t;
}

Message of(Body body, std::uint32_t rank = 0) {
  Message message;
  message.header.rank = rank;
  message.header.run_id = "run-1";
  message.body = std::move(body);
  return message;
}

std::vector<Message> examples() {
  std::vector<Message> out;
  out.push_back(batch_message(20));
  out.push_back(of(Tables{example_tables()}, 1));
  return out;
}

Decoded round_trip(const Message& message, From from) {
  const Frame frame = encode(message);
  return decode(frame.data(), frame.size(), from);
}

TEST(Wire, BatchesComeBackAsTheyWere) {
  for (const std::size_t count : {0UL, 1UL, 1000UL, kMaxBatchEvents}) {
    const Message sent = batch_message(count);
    const Decoded got = round_trip(sent, From::rank_publish);
    ASSERT_TRUE(got.message) << got.why;
    EXPECT_EQ(got.message->header.rank, 2U);
    EXPECT_EQ(got.message->header.sequence, 41U);
    EXPECT_EQ(got.message->header.incarnation, 0xABCDEFU);
    EXPECT_EQ(got.message->header.run_id, "run-1");
    const auto& batch = std::get<Batch>(got.message->body);
    const auto& want = std::get<Batch>(sent.body);
    EXPECT_EQ(batch.dropped_total, 17U);
    EXPECT_EQ(batch.dropped_here, 3U);
    EXPECT_EQ(batch.clock_error_ns, 40);
    ASSERT_EQ(batch.events.size(), count);
    if (count != 0) {
      EXPECT_EQ(std::memcmp(batch.events.data(), want.events.data(), count * sizeof(Event)), 0);
    }
  }
}

TEST(Wire, AFramesMemoryIsUsedAgainWhoeverFreesIt) {
  const Message message = batch_message(2000);
  FrameMemory& memory = FrameMemory::instance();
  const std::uint8_t* first = nullptr;
  {
    auto frame = std::make_unique<Frame>(encode(message));
    first = frame->data();
    const std::size_t others = memory.kept();
    std::thread([&] { frame.reset(); }).join();  // as ZeroMQ's thread does
    EXPECT_EQ(memory.kept(), others + 1);
  }
  const Frame again = encode(message);
  EXPECT_EQ(again.data(), first);
  // Never more than a few are kept, and none of what is too large or too small.
  std::vector<Frame> many(2 * FrameMemory::kKept);
  for (Frame& frame : many) frame = encode(message);
  many.clear();
  EXPECT_EQ(memory.kept(), FrameMemory::kKept);
  many.push_back(encode(batch_message(kMaxBatchEvents)));
  many.push_back(encode(batch_message(3)));
  EXPECT_EQ(memory.kept(), FrameMemory::kKept);
}

TEST(Wire, TablesComeBackAsTheyWere) {
  const RunTables want = example_tables();
  const Decoded got = round_trip(of(Tables{want}, 1), From::rank_publish);
  ASSERT_TRUE(got.message) << got.why;
  const RunTables& t = std::get<Tables>(got.message->body).tables;
  EXPECT_EQ(t.run_id, "run-1");
  EXPECT_EQ(t.rank, 1U);
  EXPECT_EQ(t.world, 4U);
  EXPECT_EQ(t.local_world, 2U);
  EXPECT_EQ(t.stage, 3);
  EXPECT_EQ(t.pid, 4711);
  EXPECT_EQ(t.elems, 123);
  EXPECT_EQ(t.param_bytes, 2U);
  EXPECT_EQ(t.master_bytes, 4U);
  EXPECT_EQ(t.link_gbps, 12.5);
  EXPECT_TRUE(t.simulated);
  EXPECT_EQ(t.config_json, want.config_json);
  ASSERT_EQ(t.modules.size(), 2U);
  EXPECT_EQ(t.modules[0].parent, kNoId);
  EXPECT_EQ(t.modules[1].path, "wte");
  EXPECT_EQ(t.modules[1].params, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_FALSE(t.modules[1].hooks);
  ASSERT_EQ(t.params.size(), 2U);
  EXPECT_EQ(t.params[0].shape, (std::vector<std::int64_t>{256, 64}));
  EXPECT_TRUE(t.params[0].persistent);
  EXPECT_EQ(t.params[1].modules, (std::vector<std::uint32_t>{1, 0}));
  ASSERT_EQ(t.slices.size(), 2U);
  EXPECT_EQ(t.slices[1].shard_offset, 4096);
}

TEST(Wire, EveryOtherBodyComesBack) {
  const auto text = round_trip(of(Text{5, Severity::warning, "hello"}), From::rank_publish);
  ASSERT_TRUE(text.message);
  EXPECT_EQ(std::get<Text>(text.message->body).text, "hello");
  const auto finish = round_trip(of(Finish{3, 9, 2, "bye"}), From::rank_publish);
  ASSERT_TRUE(finish.message);
  EXPECT_EQ(std::get<Finish>(finish.message->body).exit_code, 3);
  RankCommand command;
  command.id = 8;
  command.kind = RankCommand::Kind::resume;
  command.lease_s = 2.5;
  command.rule = {StopRule::Kind::run_to_param, 12, 3};
  const auto reported = round_trip(of(command), From::collector_control);
  ASSERT_TRUE(reported.message);
  EXPECT_EQ(std::get<RankCommand>(reported.message->body).rule.kind, StopRule::Kind::run_to_param);
  EXPECT_EQ(std::get<RankCommand>(reported.message->body).rule.count, 3U);
  const auto ping = round_trip(of(Ping{7, 11, 250, 8000, 77}), From::collector_control);
  ASSERT_TRUE(ping.message) << ping.why;
  EXPECT_EQ(std::get<Ping>(ping.message->body).sent_ns, 11);
  EXPECT_EQ(std::get<Ping>(ping.message->body).look_ms, 250);
  EXPECT_EQ(std::get<Ping>(ping.message->body).pack_ms, 8000);
  EXPECT_EQ(std::get<Ping>(ping.message->body).known, 77U);
  Message passed_on = of(Text{1, Severity::info, "of a rank"});
  passed_on.header.source = 5;
  passed_on.header.source_next = 9;
  const auto numbered = round_trip(passed_on, From::rank_publish);
  ASSERT_TRUE(numbered.message) << numbered.why;
  EXPECT_EQ(numbered.message->header.source, 5U);
  EXPECT_EQ(numbered.message->header.source_next, 9U);
  passed_on.header.source_next = kMaxMessages + 2;
  EXPECT_EQ(round_trip(passed_on, From::rank_publish).reject, Reject::value);
  const std::vector<RelayHello::Range> present{{0, 8}, {12, 1}};
  const std::vector<RelayHello::Range> silent{{3, 2}};
  const auto node = round_trip(of(RelayHello{"node", "clock", present, silent, 78}), From::rank_control);
  ASSERT_TRUE(node.message) << node.why;
  EXPECT_EQ(std::get<RelayHello>(node.message->body).present, present);
  EXPECT_EQ(std::get<RelayHello>(node.message->body).silent, silent);
  EXPECT_EQ(std::get<RelayHello>(node.message->body).hello_sum, 78U);
  Position position;
  position.position = {true, 99, GateKind::bucket, 4};
  position.detail = -1;
  const auto at = round_trip(of(position), From::rank_control);
  ASSERT_TRUE(at.message) << at.why;
  EXPECT_EQ(std::get<Position>(at.message->body).position.number, 99U);
  ViewReply reply;
  reply.note = "note";
  reply.begin_cursor = 17;
  reply.ranks.resize(2);
  reply.items.push_back({ViewItem::Kind::chunk, 1, 0, 0, Severity::info, "", {1, 2, 3}});
  const auto seen = round_trip(of(reply), From::collector_view);
  ASSERT_TRUE(seen.message) << seen.why;
  EXPECT_EQ(std::get<ViewReply>(seen.message->body).begin_cursor, 17U);
  EXPECT_EQ(std::get<ViewReply>(seen.message->body).items[0].data, (std::vector<std::uint8_t>{1, 2, 3}));
}

TEST(Wire, APeerMaySayOnlyWhatItsPlaceAllows) {
  const Frame command = encode(of(RankCommand{}));
  EXPECT_EQ(decode(command.data(), command.size(), From::rank_publish).reject, Reject::body);
  EXPECT_EQ(decode(command.data(), command.size(), From::viewer).reject, Reject::body);
  const Frame batch = encode(batch_message(1));
  EXPECT_EQ(decode(batch.data(), batch.size(), From::rank_control).reject, Reject::body);
}

TEST(Wire, EveryTruncationIsRefused) {
  for (const Message& message : examples()) {
    const Frame frame = encode(message);
    // The last up to seven bytes only pad the frame to its alignment.
    for (std::size_t bytes = 0; bytes + 8 <= frame.size(); ++bytes) {
      const std::vector<std::uint8_t> cut(frame.data(),
                                          frame.data() + bytes);  // its end is its allocation's end
      EXPECT_FALSE(decode(cut.data(), cut.size(), From::rank_publish).message)
          << bytes << " of " << frame.size();
    }
  }
}

TEST(Wire, FlippedBitsAreRefusedOrGiveAMessageWithinLimits) {
  std::mt19937 random(7);
  std::uint64_t refused = 0, accepted = 0;
  for (const Message& message : examples()) {
    const Frame frame = encode(message);
    for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
      std::vector<std::uint8_t> bytes(frame.data(), frame.data() + frame.size());
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
      for (int extra = static_cast<int>(random() % 3); extra > 0; --extra)
        bytes[random() % bytes.size()] ^= 0x40;
      const Decoded got = decode(bytes.data(), bytes.size(), From::rank_publish);
      (got.message ? accepted : refused) += 1;
      if (!got.message) {
        EXPECT_NE(got.reject, Reject::none);
        EXPECT_FALSE(got.why.empty());
        continue;
      }
      if (const auto* batch = std::get_if<Batch>(&got.message->body)) {
        for (const Event& event : batch->events) {
          ASSERT_LT(static_cast<std::uint8_t>(event.stream), kStreamCount);
          ASSERT_STRNE(name_of(event.kind), "unknown");
        }
      } else if (const auto* tables = std::get_if<Tables>(&got.message->body)) {
        for (const ModuleInfo& module : tables->tables.modules) {
          for (const std::uint32_t p : module.params) ASSERT_LT(p, tables->tables.params.size());
        }
      }
    }
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(accepted, 0U);  // most bits of a batch are an event's value
}

TEST(Wire, RandomBytesAreRefused) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::uint8_t> bytes(random() % 400);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    if (bytes.size() > 8 && i % 2 == 0) std::memcpy(bytes.data() + 4, "ZSCW", 4);
    for (const From from : {From::rank_publish, From::rank_control, From::viewer, From::collector_control,
                            From::collector_view}) {
      EXPECT_FALSE(decode(bytes.data(), bytes.size(), from).message);
    }
  }
}

TEST(Wire, AnotherVersionIsNamed) {
  flatbuffers::FlatBufferBuilder b;
  const auto run = b.CreateString("run-1");
  const auto body = fb::CreateText(b, 0, 0, b.CreateString("x")).Union();
  fb::FinishFrameBuffer(b, fb::CreateFrame(b, kVersion + 1, 0, 1, 0, run, fb::Body_Text, body));
  const Decoded got = decode(b.GetBufferPointer(), b.GetSize(), From::rank_publish);
  EXPECT_EQ(got.reject, Reject::version);
  EXPECT_NE(got.why.find(std::to_string(kVersion + 1)), std::string::npos) << got.why;
}

TEST(Wire, OversizedIsRefusedBeforeItIsLookedAt) {
  const std::vector<std::uint8_t> bytes(kMaxControlBytes + 1);
  EXPECT_EQ(decode(bytes.data(), bytes.size(), From::viewer).reject, Reject::size);
  Message large = batch_message(kMaxBatchEvents + 1);
  EXPECT_EQ(round_trip(large, From::rank_publish).reject, Reject::value);
}

TEST(Wire, ValuesNoCorrectRankWritesAreRefused) {
  const auto refused = [](auto change) {
    RunTables t = example_tables();
    change(t);
    return round_trip(of(Tables{t}, t.rank), From::rank_publish).reject == Reject::value;
  };
  EXPECT_FALSE(refused([](RunTables&) {}));
  EXPECT_TRUE(refused([](RunTables& t) { t.world = 0; }));
  EXPECT_TRUE(refused([](RunTables& t) { t.rank = 4; }));
  EXPECT_TRUE(refused([](RunTables& t) { t.stage = 4; }));
  EXPECT_TRUE(refused([](RunTables& t) { t.modules[1].parent = 1; }));
  EXPECT_TRUE(refused([](RunTables& t) { t.modules[1].params = {2}; }));
  EXPECT_TRUE(refused([](RunTables& t) { t.params[1].id = 0; }));
  EXPECT_TRUE(refused([](RunTables& t) { t.slices[0].rank = 4; }));
  EXPECT_TRUE(refused([](RunTables& t) { t.slices[0].elems = -1; }));
  EXPECT_TRUE(refused([](RunTables& t) { t.host.assign(kMaxName + 1, 'x'); }));
  for (const std::vector<RelayHello::Range>& present :
       {std::vector<RelayHello::Range>{{4, 2}, {5, 1}}, {{4, 0}}, {{UINT32_MAX, 2}}, {{1, UINT32_MAX}}}) {
    EXPECT_EQ(round_trip(of(RelayHello{"node", "clock", present, {}}), From::rank_control).reject,
              Reject::value);
    EXPECT_EQ(round_trip(of(RelayHello{"node", "clock", {}, present}), From::rank_control).reject,
              Reject::value);
  }
  Message bad = batch_message(3);
  std::get<Batch>(bad.body).events[1].stream = static_cast<StreamId>(kStreamCount);
  EXPECT_EQ(round_trip(bad, From::rank_publish).reject, Reject::value);
  for (const std::int64_t time : {std::int64_t{1} << 62, -(std::int64_t{1} << 62)}) {
    bad = batch_message(3);
    std::get<Batch>(bad.body).clock_ns = time;
    EXPECT_EQ(round_trip(bad, From::rank_publish).reject, Reject::value) << time;
  }
}

TEST(Wire, AMomentToKeepHasItsTimeAndWords) {
  RankCommand command;
  command.kind = RankCommand::Kind::keep;
  command.at_ns = 1'234'567'890'123;
  command.text = "slow_step step 7 took 2 s";
  const auto read = round_trip(of(command), From::collector_control);
  ASSERT_TRUE(read.message);
  const auto& got = std::get<RankCommand>(read.message->body);
  EXPECT_EQ(got.kind, RankCommand::Kind::keep);
  EXPECT_EQ(got.at_ns, command.at_ns);
  EXPECT_EQ(got.text, command.text);
  EXPECT_EQ(round_trip(of(command), From::rank_control).reject, Reject::body) << "no rank may send commands";
}

TEST(Wire, ALeaseIsANumberOfSecondsUpToADay) {
  const auto accepted = [](double seconds) {
    ViewReply reply;
    reply.lease_left_s = seconds;
    RankCommand command;
    command.lease_s = seconds;
    const bool shown = round_trip(of(reply), From::collector_view).message.has_value();
    EXPECT_EQ(round_trip(of(command), From::collector_control).message.has_value(), shown) << seconds;
    return shown;
  };
  EXPECT_TRUE(accepted(0));
  EXPECT_TRUE(accepted(kMaxLeaseS));
  EXPECT_FALSE(accepted(std::nextafter(kMaxLeaseS, 1e9)));
  EXPECT_FALSE(accepted(-1e-9));
  EXPECT_FALSE(accepted(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(accepted(std::numeric_limits<double>::quiet_NaN()));
}

// What each rank of the largest world lost is added up.
TEST(Wire, DroppedEventsOfEveryRankFitTheirSum) {
  EXPECT_LE(kMaxDropped, std::numeric_limits<std::uint64_t>::max() / kMaxWorld);
  EXPECT_LE(kMaxMessages, std::numeric_limits<std::uint64_t>::max() / kMaxWorld);
  const auto accepted = [](std::uint64_t dropped) {
    return round_trip(of(Finish{0, 9, dropped, ""}), From::rank_publish).message.has_value();
  };
  EXPECT_TRUE(accepted(kMaxDropped));
  EXPECT_FALSE(accepted(kMaxDropped + 1));
}

TEST(Wire, AFrameThatUnpacksToFarMoreThanItsSizeIsRefused) {
  // Half a million parameters that all share one 8 KiB name: 4 MB on the wire, 4 GB unpacked.
  flatbuffers::FlatBufferBuilder b;
  const auto name = b.CreateString(std::string(8192, 'x'));
  std::vector<flatbuffers::Offset<fb::Param>> params;
  for (std::uint32_t i = 0; i < 500'000; ++i) {
    fb::ParamBuilder param(b);
    param.add_id(i);
    param.add_name(name);
    params.push_back(param.Finish());
  }
  const auto vector = b.CreateVector(params);
  fb::TablesBuilder tables(b);
  tables.add_world(1);
  tables.add_params(vector);
  const auto body = tables.Finish().Union();
  const auto run = b.CreateString("run-1");
  fb::FinishFrameBuffer(b, fb::CreateFrame(b, kVersion, 0, 1, 0, run, fb::Body_Tables, body));
  const Decoded got = decode(b.GetBufferPointer(), b.GetSize(), From::rank_publish);
  EXPECT_FALSE(got.message);
  EXPECT_NE(got.why.find("unpacks"), std::string::npos) << got.why;
}

TEST(Endpoints, AreDerivedFromOne) {
  const Endpoints tcp = endpoints_of("tcp://127.0.0.1:5711");
  EXPECT_EQ(tcp.view, "tcp://127.0.0.1:5712");
  EXPECT_EQ(tcp.control, "tcp://127.0.0.1:5713");
  EXPECT_EQ(endpoints_of("ipc:///tmp/x").control, "ipc:///tmp/x.control");
  for (const char* bad :
       {"", "127.0.0.1:5711", "tcp://host", "tcp://:5711", "tcp://host:", "tcp://host:x", "tcp://host:0",
        "tcp://host:65534", "tcp://host:99999999999", "udp://host:1", "ipc://"}) {
    EXPECT_THROW((void)endpoints_of(bad), std::runtime_error) << bad;
  }
  EXPECT_TRUE(is_local("tcp://127.0.0.1:1"));
  EXPECT_TRUE(is_local("tcp://[::1]:1"));
  EXPECT_FALSE(is_local("tcp://0.0.0.0:1"));
  EXPECT_FALSE(is_local("tcp://*:1"));
}

}  // namespace
}  // namespace shardscope::instrumentation::wire
