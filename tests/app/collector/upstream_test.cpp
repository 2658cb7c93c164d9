// What a node's collector passes on while it does not know its ranks' clocks, on a clock of the test's.
#include "app/collector/upstream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>
#include <zmq.hpp>

#include "app/collector/frame_pack.h"
#include "instrumentation/clock.h"
#include "instrumentation/sockets.h"
#include "tests/app/collector/test_rank.h"

namespace shardscope::collector {
namespace {

constexpr std::uint32_t kWorld = 16;
constexpr double kBegin_s = 100;
constexpr double kNever_s = std::numeric_limits<double>::infinity();
constexpr double kAlmost_s = RankSession::kClockWait_s - 0.001;

/// An Upstream and the door of a collector above that it knocks at.
class Hop {
 public:
  static constexpr int kMostSockets = 32;
  explicit Hop(const std::string& name, std::size_t bytes = 1U << 20)
      : endpoint_("ipc://" + testing::TempDir() + "upstream_" + name + std::to_string(getpid())),
        control_(make_socket(context_, Role::collector_control)),
        upstream_(context_, {.endpoint = endpoint_,
                             .key_file = {},
                             .bytes = bytes,
                             .id = 0,  // processes keep their numbers
                             .host = "node",
                             .clock_id = "node",
                             .clock = {},
                             .command = {},
                             .name_ranks = {}}) {
    control_.bind(endpoints_of(endpoint_).control);
    open();
    // Nothing is taken before the connection is there.
    first_.another_process(1);
    first_.clock.same_clock();
    first_message(first_, 1, kBegin_s);
    EXPECT_TRUE(eventually([&] {
      upstream_.pump(kBegin_s);
      return upstream_.sent();
    }));
    EXPECT_EQ(arrived(1), std::vector<std::uint64_t>{1});
  }
  [[nodiscard]] Upstream& upstream() noexcept { return upstream_; }

  void open() {
    above_ = make_socket(context_, Role::collector_publish);
    above_.set(zmq::sockopt::rcvtimeo, 10'000);  // for a failing test to end
    above_.bind(endpoints_of(endpoint_).publish);
  }
  /// The connection is gone, with all that lay in it. Messages of the test's own may not have been asked for.
  void cut() {
    above_.close();
    EXPECT_TRUE(eventually([&] {
      upstream_.pump(kBegin_s);
      return !upstream_.connected();
    }));
  }

  /// The collector above goes while this process has no room for further sockets.
  void cut_without_room() {
    std::vector<zmq::socket_t> others;
    above_.close();
    const auto end = Clock::now() + 1s;
    while (Clock::now() < end) {
      try {
        for (;;) others.emplace_back(context_, zmq::socket_type::pair);
      } catch (const zmq::error_t&) {
      }
      upstream_.pump(kBegin_s);
      EXPECT_FALSE(upstream_.connected() && Clock::now() > end - 500ms);
      std::this_thread::sleep_for(1ms);
    }
  }

  /// The first message of a process of a rank.
  void first_message(RankSession& rank, std::uint64_t process, double now_s) {
    wire::Message message;
    message.header.rank = rank.row.rank;
    message.header.incarnation = process;
    message.header.run_id = "collector-test";
    message.body = wire::Tables{tables_of(rank.row.rank, kWorld)};
    rank.first_message_s = now_s;
    upstream_.published(rank, message, 0);
  }

  /// Another process of the rank says hello.
  void another_process(RankSession& rank, std::uint64_t process) {
    upstream_.keep_clock(rank.row.rank, rank);
    rank.another_process(process);
  }

  /// Events at `at_ns` of its clock, after `missing` messages that did not arrive.
  void publish(RankSession& rank, std::uint64_t process, std::uint64_t sequence, std::int64_t at_ns,
               std::uint64_t missing = 0, std::size_t events = 1, std::uint64_t dropped_total = 0) {
    wire::Message message;
    message.header.rank = rank.row.rank;
    message.header.incarnation = process;
    message.header.sequence = sequence;
    message.header.run_id = "collector-test";
    wire::Batch batch;
    batch.events.assign(events, event_of(EventKind::tokens, at_ns));
    batch.begin_ns = batch.end_ns = at_ns;
    batch.dropped_total = dropped_total;
    message.body = batch;
    upstream_.published(rank, message, missing);
  }

  /// The batches among the next `count` messages, by their rank's messages; a null for any other message.
  std::vector<std::optional<wire::Relay>> relayed(std::size_t count) {
    std::vector<std::optional<wire::Relay>> out;
    while (out.size() < count) {
      const std::optional<wire::Message> message = next();
      if (!message) break;
      const auto* batch = std::get_if<wire::Batch>(&message->body);
      out.push_back(batch != nullptr ? batch->relay : std::nullopt);
    }
    return out;
  }

  [[nodiscard]] std::vector<wire::Body> arrived_by_now() {
    above_.set(zmq::sockopt::rcvtimeo, 0);
    std::vector<wire::Body> out;
    for (std::optional<wire::Message> message = next(); message; message = next())
      out.push_back(std::move(message->body));
    return out;
  }
  /// next() waits for a message, which a test that fails does not wait for without end.
  void wait_for_messages() { above_.set(zmq::sockopt::rcvtimeo, 10'000); }

  /// The next `count` messages that arrive above.
  std::vector<wire::Message> messages(std::size_t count) {
    std::vector<wire::Message> out;
    while (out.size() < count) {
      std::optional<wire::Message> message = next();
      if (!message) break;
      out.push_back(std::move(*message));
    }
    return out;
  }
  std::vector<wire::Body> bodies(std::size_t count) {
    std::vector<wire::Body> out;
    for (wire::Message& message : messages(count)) out.push_back(std::move(message.body));
    return out;
  }

  /// The processes of the next `count` messages, which are of rank 0, each confirmed as it comes.
  std::vector<std::uint64_t> confirmed(std::size_t count) {
    std::vector<std::uint64_t> processes;
    above_.set(zmq::sockopt::rcvtimeo, 0);
    EXPECT_TRUE(eventually([&] {
      upstream_.pump(kBegin_s);
      for (std::optional<wire::Message> message = next(); message; message = next()) {
        processes.push_back(message->header.incarnation);
        answer(wire::Received{message->header.incarnation, message->header.sequence + 1, {}});
      }
      return processes.size() == count;
    }));
    return processes;
  }

  /// The collector above answers the node's hello.
  void answer(wire::Body answered, std::uint64_t process = 0) {
    zmq::message_t route, hello;
    if (!route_) {
      // The connection may have come after the last pump().
      ASSERT_TRUE(eventually([&] {
        upstream_.pump(kBegin_s);
        return control_.recv(route, zmq::recv_flags::dontwait).has_value();
      }));
      ASSERT_TRUE(control_.recv(hello));
      route_.emplace(route.to_string());
    }
    wire::Message message;
    message.header.run_id = "collector-test";
    message.header.incarnation = process;
    message.body = std::move(answered);
    const wire::Frame frame = wire::encode(message);
    control_.send(zmq::const_buffer(route_->data(), route_->size()), zmq::send_flags::sndmore);
    control_.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none);
  }

  /// What the node has said to the collector above since the last call.
  std::vector<wire::Body> control() {
    std::vector<wire::Body> out;
    zmq::message_t route, message;
    while (control_.recv(route, zmq::recv_flags::dontwait) && control_.recv(message)) {
      wire::Decoded decoded = wire::decode(message.data(), message.size(), wire::From::rank_control);
      EXPECT_TRUE(decoded.message) << decoded.why;
      if (decoded.message) out.push_back(std::move(decoded.message->body));
    }
    return out;
  }

  /// By process, the offset that the next `count` batches of events have.
  std::vector<std::pair<std::uint64_t, std::int64_t>> offsets(std::size_t count) {
    std::vector<std::pair<std::uint64_t, std::int64_t>> out;
    while (out.size() < count) {
      const std::optional<wire::Message> message = next();
      if (!message) break;
      const auto* batch = std::get_if<wire::Batch>(&message->body);
      if (batch != nullptr && batch->relay)
        out.emplace_back(message->header.incarnation, batch->relay->offset_ns);
    }
    return out;
  }

  /// The processes of the next `count` messages that arrive above.
  std::vector<std::uint64_t> arrived(std::size_t count) {
    std::vector<std::uint64_t> processes;
    while (processes.size() < count) {
      const std::optional<wire::Message> message = next();
      if (!message) break;
      processes.push_back(message->header.incarnation);
    }
    return processes;
  }

  /// By process, the numbers of what arrives above while the Upstream sends, until as many have come.
  std::map<std::uint64_t, std::vector<std::uint64_t>> numbers(std::size_t count) {
    std::map<std::uint64_t, std::vector<std::uint64_t>> out;
    above_.set(zmq::sockopt::rcvtimeo, 0);
    EXPECT_TRUE(eventually([&] {
      upstream_.pump(kBegin_s);
      for (std::optional<wire::Message> message = next(); message; message = next()) {
        out[message->header.incarnation].push_back(message->header.sequence);
        --count;
      }
      return count == 0;
    }));
    return out;
  }

  /// Messages of the socket so far, packs or not.
  [[nodiscard]] std::size_t packs() const noexcept { return packs_; }

 private:
  /// None: nothing has come for long.
  std::optional<wire::Message> next() {
    while (frames_.empty()) {
      zmq::message_t message;
      if (!above_.recv(message)) return std::nullopt;
      ++packs_;
      PackedFrames frames({static_cast<const std::uint8_t*>(message.data()), message.size()});
      for (auto frame = frames.next(); !frame.empty(); frame = frames.next()) {
        wire::Decoded decoded = wire::decode(frame.data(), frame.size(), wire::From::rank_publish);
        EXPECT_TRUE(decoded.message) << decoded.why;
        if (decoded.message) frames_.push_back(std::move(*decoded.message));
      }
    }
    wire::Message message = std::move(frames_.front());
    frames_.pop_front();
    return message;
  }

  std::deque<wire::Message> frames_;  ///< arrived, and not asked for yet
  std::size_t packs_ = 0;
  zmq::context_t context_{1, kMostSockets};
  std::string endpoint_;
  RankSession first_{kWorld - 1};
  zmq::socket_t above_, control_;
  std::optional<std::string> route_;  ///< of the node
  Upstream upstream_;
};

TEST(Upstream, ReplacedProcessesWaitForTheirClocksSideBySide) {
  Hop hop("side");
  RankSession rank(0);
  for (const std::uint64_t process : {11U, 12U, 13U, 14U}) hop.first_message(rank, process, kBegin_s);
  hop.upstream().pump(kBegin_s);
  hop.upstream().pump(kBegin_s + kAlmost_s);
  EXPECT_FALSE(hop.upstream().sent()) << "a clock may still become known";
  hop.upstream().pump(kBegin_s + RankSession::kClockWait_s);
  EXPECT_TRUE(hop.upstream().sent()) << "one wait is over, so all are";
  EXPECT_EQ(hop.arrived(4), (std::vector<std::uint64_t>{11, 12, 13, 14}));
}

TEST(Upstream, AWaitBeginsWithTheFirstMessageOfAProcess) {
  Hop hop("received");
  RankSession rank(0);
  hop.first_message(rank, 11, kBegin_s);
  hop.first_message(rank, 12, kBegin_s + 1);
  hop.upstream().pump(kBegin_s + 1 + kAlmost_s);
  EXPECT_FALSE(hop.upstream().sent()) << "the second came a second later";
  hop.upstream().pump(kBegin_s + 1 + RankSession::kClockWait_s);
  EXPECT_TRUE(hop.upstream().sent());
  EXPECT_EQ(hop.arrived(2), (std::vector<std::uint64_t>{11, 12}));
}

/// The collector above takes what comes last for the process that has replaced the others.
TEST(Upstream, AReplacedProcessDoesNotComeAfterItsHeirBecauseAnotherRankWaits) {
  Hop hop("order");
  RankSession unknown(0), known(1);
  hop.first_message(unknown, 11, kBegin_s);
  hop.first_message(unknown, 12, kBegin_s);
  for (const std::uint64_t process : {21U, 22U}) {
    hop.another_process(known, process);
    known.clock.same_clock();
    hop.first_message(known, process, kBegin_s);
  }
  hop.upstream().pump(kBegin_s);
  hop.upstream().pump(kBegin_s + RankSession::kClockWait_s);
  EXPECT_TRUE(hop.upstream().sent());
  EXPECT_EQ(hop.arrived(4), (std::vector<std::uint64_t>{21, 22, 11, 12}));
}

/// The earlier one has more than may be under way without a receipt.
TEST(Upstream, AProcessIsNotSentBeforeTheRestOfTheOneThatItReplaced) {
  constexpr std::uint64_t kBatches = 8;
  Hop hop("rest");
  RankSession rank(0);
  hop.another_process(rank, 11);
  rank.clock.same_clock();
  hop.first_message(rank, 11, kBegin_s);
  for (std::uint64_t i = 1; i <= kBatches; ++i) hop.publish(rank, 11, i, 1'000, 0, 200);
  for (const std::uint64_t process : {12U, 13U}) {
    hop.another_process(rank, process);
    rank.clock.same_clock();
    hop.first_message(rank, process, kBegin_s);
  }
  hop.upstream().pump(kBegin_s);
  ASSERT_FALSE(hop.upstream().sent()) << "a window takes less";
  std::vector<std::uint64_t> processes(kBatches + 1, 11);
  processes.insert(processes.end(), {12, 13});
  EXPECT_EQ(hop.confirmed(kBatches + 3), processes);
}

/// Whether it has arrived is not known without a receipt.
TEST(Upstream, WhatIsUnderWayOfAnAbandonedProcessIsCounted) {
  constexpr std::uint64_t kFirst = 100, kDropped = 7, kProcesses = Upstream::kMostReplaced + 2;
  constexpr std::int64_t kAt_ns = 1'000;
  Hop hop("abandoned");
  RankSession rank(0);
  std::vector<wire::Body> arrived;
  for (std::uint64_t process = kFirst; process < kFirst + kProcesses; ++process) {
    hop.another_process(rank, process);
    rank.clock.same_clock();
    hop.first_message(rank, process, kBegin_s);
    // Of the first one a batch is confirmed, and what that said of drops.
    const bool first = process == kFirst;
    if (first) hop.publish(rank, process, 1, kAt_ns - 1, 0, 1, 2);
    if (first) hop.confirmed(2);
    hop.publish(rank, process, first ? 2 : 1, kAt_ns + static_cast<std::int64_t>(process - kFirst), 0, 3,
                first ? kDropped : 0);
    ASSERT_TRUE(eventually([&] {
      hop.upstream().pump(kBegin_s);
      return hop.upstream().sent();
    }));
    hop.wait_for_messages();
    const std::size_t count = first ? 1 : process + 1 == kFirst + kProcesses ? 4 : 2;
    for (wire::Body& body : hop.bodies(count)) arrived.push_back(std::move(body));
  }
  EXPECT_EQ(hop.upstream().shed(), 3U);
  std::uint64_t dropped = 0;
  bool said = false;
  for (const wire::Body& body : arrived) {
    if (const auto* text = std::get_if<wire::Text>(&body))
      said |= text->text.find("3 of them sent without a receipt") != std::string::npos;
    const auto* batch = std::get_if<wire::Batch>(&body);
    if (batch == nullptr || batch->dropped_here == 0) continue;
    dropped += batch->dropped_here;
    EXPECT_EQ(batch->begin_ns, kAt_ns);
    EXPECT_EQ(batch->end_ns, kAt_ns + 1);
  }
  EXPECT_EQ(dropped, 3 + kDropped - 2);
  EXPECT_TRUE(said);
}

/// The collector above drops what has a number that it has got.
TEST(Upstream, AReportOfWhatWasDiscardedHasNoNumberOfAMessageToCome) {
  constexpr std::uint64_t kFirst = 100, kProcesses = Upstream::kMostReplaced + 2, kSequence = 5;
  Hop hop("report");
  RankSession rank(0), at_top(0);
  for (std::uint64_t process = kFirst; process < kFirst + kProcesses; ++process) {
    hop.another_process(rank, process);
    rank.clock.same_clock();
    hop.publish(rank, process, kSequence, 1'000);  // a batch is the first that this collector gets of it
  }
  wire::Message text;
  text.header = {.rank = 0,
                 .incarnation = kFirst + kProcesses - 1,
                 .sequence = kSequence + 1,
                 .run_id = "collector-test"};
  text.body = wire::Text{1'001, Severity::info, "behind the report"};
  hop.upstream().published(rank, text, 0);
  hop.upstream().pump(kBegin_s + 1);
  // One process is discarded, and the last one has the batch, the report as a batch and a text, and a text.
  const std::vector<wire::Message> sent = hop.messages(kProcesses - 1 + 3);
  ASSERT_EQ(sent.size(), kProcesses + 2);
  for (const wire::Message& message : sent) {
    EXPECT_EQ(at_top.accept(message.header, kBegin_s).order, RankSession::Order::next);
    EXPECT_FALSE(at_top.passed_on_before(message.header)) << message.header.source_next;
    at_top.add_relayed(message.header);
    if (const auto* batch = std::get_if<wire::Batch>(&message.body)) at_top.add(*batch, kBegin_s);
  }
  const auto* report = std::get_if<wire::Batch>(&sent[sent.size() - 3].body);
  ASSERT_TRUE(report != nullptr && report->relay);
  EXPECT_EQ(report->dropped_here, 1U);
  EXPECT_EQ(report->relay->source_first, kSequence);
  EXPECT_EQ(report->relay->source_last, kSequence);
  EXPECT_EQ(sent.back().header.source_next, kSequence + 2);
}

/// A clock that is `offset` behind ours, to the nanosecond.
void compare(ClockEstimator& clock, std::int64_t offset) {
  clock.add(10'000, 10'000 - offset, 10'000 - offset, 10'000);
}

/// Its heir may run on another host, whose clock says something else.
TEST(Upstream, AReplacedProcessIsConvertedWithItsOwnClock) {
  Hop hop("clocks");
  RankSession rank(0);
  hop.another_process(rank, 11);
  compare(rank.clock, 7'000);
  hop.publish(rank, 11, 0, 3'000);
  hop.another_process(rank,
                      12);  // says hello before anything of it arrives, and before the last of the other
  hop.publish(rank, 11, 1, 3'001);
  compare(rank.clock, -400);
  hop.publish(rank, 12, 0, 10'500);
  // This one publishes before it says hello: nothing is known of its clock until then.
  hop.publish(rank, 13, 0, 5'000);
  hop.another_process(rank, 13);
  compare(rank.clock, 5'000);
  hop.upstream().pump(kBegin_s + RankSession::kClockWait_s);
  using Offsets = std::vector<std::pair<std::uint64_t, std::int64_t>>;
  EXPECT_EQ(hop.offsets(4), (Offsets{{11, 7'000}, {11, 7'000}, {12, -400}, {13, 5'000}}));
}

TEST(Upstream, EventsOfRanksGoInOneMessageOfEachInterval) {
  constexpr double kEvery_s = 0.25;
  Hop hop("packed");
  RankSession one(0), other(1);
  for (RankSession* rank : {&one, &other}) {
    hop.another_process(*rank, 11 + rank->row.rank);
    rank->clock.same_clock();
    hop.first_message(*rank, 11 + rank->row.rank, kBegin_s);
  }
  hop.upstream().pump(kBegin_s + 1, kEvery_s);
  EXPECT_EQ(hop.arrived(2), (std::vector<std::uint64_t>{11, 12}));
  EXPECT_EQ(hop.packs(), 2U) << "the Hop's own and one of both ranks";
  hop.publish(one, 11, 1, 1'000);
  hop.upstream().pump(kBegin_s + 1.1, kEvery_s);
  hop.publish(other, 12, 1, 1'000);
  hop.publish(one, 11, 2, 2'000);
  EXPECT_FALSE(hop.upstream().sent()) << "the interval is not over";
  EXPECT_NEAR(hop.upstream().rest_s(kBegin_s + 1.1), 0.15, 1e-6);
  hop.upstream().pump(kBegin_s + 1 + kEvery_s, kEvery_s);
  EXPECT_TRUE(hop.upstream().sent());
  EXPECT_EQ(hop.arrived(3), (std::vector<std::uint64_t>{12, 11, 11})) << "in turn, each rank in its order";
  EXPECT_EQ(hop.packs(), 3U);
}

TEST(Upstream, WhatIsNotEventsTakesWhatWaitsWithItAtOnce) {
  Hop hop("hurry");
  RankSession rank(0);
  hop.another_process(rank, 11);
  rank.clock.same_clock();
  hop.first_message(rank, 11, kBegin_s);
  hop.upstream().pump(kBegin_s + 1, 60);
  hop.publish(rank, 11, 1, 1'000);
  hop.upstream().pump(kBegin_s + 2, 60);
  EXPECT_FALSE(hop.upstream().sent());
  wire::Message end;
  end.header = {.rank = 0, .incarnation = 11, .sequence = 2, .run_id = "collector-test"};
  end.body = wire::Finish{};
  hop.upstream().published(rank, end, 0);
  hop.upstream().pump(kBegin_s + 2, 60);
  EXPECT_TRUE(hop.upstream().sent());
  EXPECT_EQ(hop.arrived(3).size(), 3U);
}

/// A rank on the node's clock, which has published its tables.
void begin_on_our_clock(Hop& hop, RankSession& rank) {
  hop.another_process(rank, 11);
  rank.clock.same_clock();
  hop.first_message(rank, 11, kBegin_s);
  hop.upstream().pump(kBegin_s + 1, 60);
  ASSERT_EQ(hop.arrived(1), (std::vector<std::uint64_t>{11}));
}

TEST(Upstream, WhatWaitedOfARankGoesAsOneBatchUpToATextOrALoss) {
  Hop hop("joined");
  RankSession rank(0);
  begin_on_our_clock(hop, rank);
  const std::int64_t now_ns = monotonic_now_ns();
  for (std::uint64_t i = 1; i <= 3; ++i) hop.publish(rank, 11, i, now_ns + static_cast<std::int64_t>(i));
  wire::Message text;
  text.header = {.rank = 0, .incarnation = 11, .sequence = 4, .run_id = "collector-test"};
  text.body = wire::Text{now_ns, Severity::info, "between"};
  hop.upstream().published(rank, text, 0);
  hop.publish(rank, 11, 5, now_ns + 5);
  hop.publish(rank, 11, 7, now_ns + 7, 1);
  hop.publish(rank, 11, 8, now_ns + 8);
  hop.upstream().pump(kBegin_s + 2, 60);
  const auto sent = hop.relayed(4);
  ASSERT_EQ(sent.size(), 4U);
  ASSERT_TRUE(sent[0] && sent[2] && sent[3]);
  EXPECT_EQ(sent[0]->source_last, 3U) << "three batches";
  EXPECT_FALSE(sent[1]) << "the text, in its place";
  EXPECT_EQ(sent[2]->source_last, 5U) << "what did not arrive lies between this and the next";
  EXPECT_EQ(sent[3]->source_last, 8U);
  EXPECT_EQ(sent[3]->lost_total, 1U);
  EXPECT_TRUE(hop.upstream().sent());
}

/// The collector above has some of it, and knows which by the numbers of the rank's messages.
TEST(Upstream, WhatAnEarlierCollectorOfTheNodeMayHavePassedOnStaysAsItWas) {
  Hop hop("again");
  RankSession rank(0);
  const std::int64_t before_ns = monotonic_now_ns() - 1'000'000;
  begin_on_our_clock(hop, rank);
  for (std::uint64_t i = 1; i <= 3; ++i) hop.publish(rank, 11, i, before_ns);
  hop.upstream().pump(kBegin_s + 62, 60);
  const auto sent = hop.relayed(3);
  ASSERT_EQ(sent.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(sent[i]);
    EXPECT_EQ(sent[i]->source_last, i + 1);
  }
}

TEST(Upstream, EventsWaitAsLongAsTheCollectorAboveLetsThemAndNotWhenAViewerComes) {
  Hop hop("paced");
  RankSession rank(0);
  begin_on_our_clock(hop, rank);
  double now_s = kBegin_s + 2;
  const auto pump = [&] { hop.upstream().pump(now_s, hop.upstream().pack_s()); };
  hop.answer(wire::Ping{1, 0, 250, 4000});
  ASSERT_TRUE(eventually([&] {
    pump();
    return hop.upstream().pack_s() == 4;
  }));
  EXPECT_FALSE(hop.upstream().watched());
  hop.publish(rank, 11, 1, monotonic_now_ns());
  pump();  // the interval begins
  hop.publish(rank, 11, 2, monotonic_now_ns());
  now_s += 3.5;
  pump();
  EXPECT_FALSE(hop.upstream().sent());
  hop.answer(wire::Ping{2, 0, 0, 0});
  ASSERT_TRUE(eventually([&] {
    pump();
    return hop.upstream().sent();
  })) << "at the same time on the clock of the pace";
  EXPECT_TRUE(hop.upstream().watched());
}

TEST(Upstream, TheTablesOfARankAreSentAgainWhole) {
  Hop hop("tables");
  RankSession rank(0);
  begin_on_our_clock(hop, rank);
  wire::RankCommand ask;
  ask.kind = wire::RankCommand::Kind::resend_tables;
  hop.answer(ask);
  std::vector<wire::Body> sent;
  ASSERT_TRUE(eventually([&] {
    hop.upstream().pump(kBegin_s + 62);
    sent = hop.arrived_by_now();
    return !sent.empty();
  }));
  ASSERT_EQ(sent.size(), 1U);
  const auto* tables = std::get_if<wire::Tables>(&sent.front());
  ASSERT_NE(tables, nullptr);
  EXPECT_EQ(tables->tables, tables_of(0, kWorld));
}

/// The node names a rank that has ended until the collector above confirms that end.
TEST(Upstream, AConfirmedEndIsSaidAgainToAnotherCollectorAbove) {
  Hop hop("ends");
  RankSession rank(0);
  begin_on_our_clock(hop, rank);
  wire::Message end;
  end.header = {.rank = 0, .incarnation = 11, .sequence = 1, .run_id = "collector-test"};
  end.body = wire::Finish{};
  hop.upstream().published(rank, end, 0);
  double now_s = kBegin_s + 2;
  const auto says_end = [&](bool said) {
    return eventually([&] {
      hop.upstream().pump(++now_s);
      bool node = false, ended = false;
      for (const wire::Body& body : hop.control()) {
        node |= std::holds_alternative<wire::RelayHello>(body);
        ended |= std::holds_alternative<wire::Hello>(body);
      }
      return node && ended == said;
    });
  };
  hop.answer(wire::Ping{1, 0, 0, 0}, 1);
  EXPECT_TRUE(says_end(true));
  wire::RankCommand confirm;
  confirm.kind = wire::RankCommand::Kind::finish_received;
  hop.answer(confirm, 1);
  EXPECT_TRUE(says_end(false));
  hop.answer(wire::Ping{2, 0, 0, 0}, 2);
  EXPECT_TRUE(says_end(true));
}

TEST(Upstream, WithoutAConnectionNothingIsDueByTime) {
  Hop hop("away");
  RankSession rank(0);
  hop.another_process(rank, 11);
  rank.clock.same_clock();
  hop.cut();
  hop.first_message(rank, 11, kBegin_s);
  hop.publish(rank, 11, 1, 1'000);
  hop.upstream().pump(kBegin_s + 1, 0.25);
  EXPECT_EQ(hop.upstream().rest_s(kBegin_s + 2), kNever_s) << "else its thread takes a core";
  hop.open();
  EXPECT_EQ(hop.numbers(3)[11], (std::vector<std::uint64_t>{0, 1}));
}

TEST(Upstream, WithoutRoomForFurtherSocketsItConnectsLater) {
  Hop hop("room");
  RankSession rank(0);
  hop.another_process(rank, 11);
  rank.clock.same_clock();
  hop.cut_without_room();
  hop.first_message(rank, 11, kBegin_s);
  ASSERT_TRUE(eventually([&] {
    try {
      hop.open();
      return true;
    } catch (const zmq::error_t&) {  // libzmq frees sockets some time after they have been closed
      return false;
    }
  }));
  EXPECT_EQ(hop.numbers(2)[11], (std::vector<std::uint64_t>{0}));
}

/// What waits for room when the connection is cut is sent over the next one with what lay in it: all of it,
/// in its order.
TEST(Upstream, APackThatFoundNoRoomIsNeitherLostNorOutOfOrderAfterACut) {
  constexpr std::uint32_t kRanks = 8;
  constexpr std::uint64_t kBatches = 96;
  Hop hop("full", std::size_t{64} << 20);
  std::deque<RankSession> ranks;
  for (std::uint32_t i = 0; i < kRanks; ++i) {
    RankSession& rank = ranks.emplace_back(i);
    hop.another_process(rank, 11 + i);
    rank.clock.same_clock();
    hop.first_message(rank, 11 + i, kBegin_s);
  }
  for (std::uint64_t sequence = 1; sequence <= kBatches; ++sequence) {
    for (RankSession& rank : ranks) hop.publish(rank, 11 + rank.row.rank, sequence, 1'000, 0, 200);
  }
  hop.upstream().pump(kBegin_s + 1, 0.25);
  hop.publish(ranks[0], 11, kBatches + 1, 1'000);
  ASSERT_FALSE(hop.upstream().sent()) << "nothing is received above";
  EXPECT_EQ(hop.upstream().rest_s(kBegin_s + 2), kNever_s) << "the socket wakes its thread";
  hop.cut();
  hop.open();
  auto numbers = hop.numbers(1 + kRanks * (kBatches + 1) + 1);
  std::vector<std::uint64_t> all(kBatches + 1);
  std::iota(all.begin(), all.end(), 0U);
  for (std::uint32_t i = 1; i < kRanks; ++i) EXPECT_EQ(numbers[11 + i], all) << i;
  all.push_back(kBatches + 1);
  EXPECT_EQ(numbers[11], all);
}

}  // namespace
}  // namespace shardscope::collector
