// The publisher against a bare ZeroMQ socket in the collector's place, and against none.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <thread>
#include <zmq.hpp>

#include "instrumentation/clock.h"
#include "instrumentation/emission_cost.h"
#include "instrumentation/emitter.h"
#include "instrumentation/gate.h"
#include "instrumentation/local_keys.h"
#include "instrumentation/rank_link.h"
#include "instrumentation/ring.h"
#include "instrumentation/sockets.h"
#include "instrumentation/wire.h"

namespace shardscope::instrumentation {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Takes what a rank publishes; does not answer control.
class BareCollector {
 public:
  BareCollector() : pull_(make_socket(context_, Role::collector_publish)) {
    pull_.bind("tcp://127.0.0.1:*");
    endpoint = pull_.get(zmq::sockopt::last_endpoint);
  }
  std::optional<wire::Message> receive(std::chrono::milliseconds wait) {
    zmq::pollitem_t item{pull_.handle(), 0, ZMQ_POLLIN, 0};
    zmq::poll(&item, 1, wait);
    zmq::message_t message;
    if (!pull_.recv(message, zmq::recv_flags::dontwait)) return std::nullopt;
    wire::Decoded decoded = wire::decode(message.data(), message.size(), wire::From::rank_publish);
    EXPECT_TRUE(decoded.message) << decoded.why;
    return std::move(decoded.message);
  }
  std::string endpoint;

 private:
  zmq::context_t context_{1};
  zmq::socket_t pull_;
};

RunTables tables() {
  RunTables t;
  t.run_id = "test-run";
  t.world = 1;
  return t;
}

PublisherOptions options_for(const std::string& endpoint) {
  PublisherOptions options;
  options.endpoint = endpoint;
  options.key_file = kNoKey;  // what listens there is no collector with a folder
  options.linger_s = 3;
  return options;
}

struct Taken {
  std::vector<Event> events;
  std::vector<wire::Text> texts;
  std::map<std::uint32_t, std::string> names;
  std::optional<wire::Finish> finish;
  std::uint64_t dropped = 0;
  std::uint64_t messages = 0;
  bool tables_first = false, in_sequence = true;
};

void take_one(Taken& taken, const wire::Message& message) {
  taken.in_sequence &= message.header.sequence == taken.messages;
  if (taken.messages++ == 0) taken.tables_first = std::holds_alternative<wire::Tables>(message.body);
  if (const auto* batch = std::get_if<wire::Batch>(&message.body)) {
    taken.events.insert(taken.events.end(), batch->events.begin(), batch->events.end());
    taken.dropped = batch->dropped_total;
  } else if (const auto* text = std::get_if<wire::Text>(&message.body)) {
    taken.texts.push_back(*text);
  } else if (const auto* name = std::get_if<wire::Name>(&message.body)) {
    taken.names[name->id] = name->name;
  } else if (const auto* finish = std::get_if<wire::Finish>(&message.body)) {
    taken.finish = *finish;
  }
}

void take_until_the_end(BareCollector& collector, Taken& taken) {
  while (!taken.finish) {
    const auto message = collector.receive(5000ms);
    if (!message) break;
    take_one(taken, *message);
  }
}

TEST(Publisher, CarriesEventsOfManyThreadsInOrderOfTimeWithTextsNamesAndTheEnd) {
  BareCollector collector;
  Taken taken;
  std::thread receiver([&] { take_until_the_end(collector, taken); });
  constexpr std::uint32_t kThreads = 4, kEach = 20'000;
  const std::int64_t begin = monotonic_now_ns();
  {
    Publisher publisher(options_for(collector.endpoint), tables());
    EXPECT_EQ(publisher.name_id("gelu"), publisher.name_id("gelu"));
    EXPECT_NE(publisher.name_id("gelu"), publisher.name_id("softmax"));
    publisher.message(Severity::warning, "careful");
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (std::uint32_t i = 0; i < kEach; ++i) {
          SHARDSCOPE_EMIT(Detail::params, .kind = EventKind::param_status, .stream = static_cast<StreamId>(t),
                          .a = i, .b = t);
          if (i % 1000 == 0) std::this_thread::sleep_for(1ms);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    const auto cpu = publishing_cpu_ns();
    EXPECT_EQ(cpu.has_value(), access("/proc/self/schedstat", R_OK) == 0);
    EXPECT_GT(cpu.value_or(1), 0);
    publisher.finish(0, "done");
  }
  EXPECT_FALSE(publishing_cpu_ns()) << "the threads are found by their names, and these have ended";
  const std::int64_t end = monotonic_now_ns();
  receiver.join();
  EXPECT_TRUE(taken.tables_first);
  EXPECT_TRUE(taken.in_sequence);
  ASSERT_TRUE(taken.finish);
  EXPECT_EQ(taken.finish->text, "done");
  ASSERT_EQ(taken.texts.size(), 2U);
  EXPECT_EQ(taken.texts[0].text, "careful");
  EXPECT_EQ(
      taken.texts[1].text.rfind(kEmissionCostPrefix + std::to_string(kThreads * kEach) + " events x ", 0), 0U)
      << taken.texts[1].text;
  EXPECT_NE(taken.texts[1].text.find("the threads that publish took"), std::string::npos)
      << taken.texts[1].text;
  EXPECT_EQ(taken.names.size(), 2U);
  EXPECT_EQ(taken.events.size() + taken.dropped, kThreads * kEach);
  EXPECT_EQ(taken.dropped, 0U);
  std::map<std::uint32_t, std::uint32_t> next;
  std::map<std::uint32_t, std::int64_t> last;
  for (const Event& event : taken.events) {
    EXPECT_EQ(event.a, next[event.b]++);
    const auto ns = static_cast<std::int64_t>(event.ticks);
    EXPECT_GE(ns, last[event.b]) << "within a lane";
    last[event.b] = ns;
    EXPECT_GE(ns, begin - 1'000'000);
    EXPECT_LE(ns, end + 1'000'000);
  }
}

TEST(Publisher, WithoutACollectorItBoundsMemoryCountsAndEndsSoon) {
  PublisherOptions options = options_for("tcp://127.0.0.1:9");  // no process listens there
  options.queue_bytes = 1U << 20;
  options.ring_events = 4096;
  const auto begin = Clock::now();
  constexpr std::uint64_t kEvents = 300'000;
  std::uint64_t dropped = 0;
  testing::internal::CaptureStderr();
  {
    Publisher publisher(options, tables());
    std::thread emitter([&] {
      for (std::uint64_t i = 0; i < kEvents; ++i) {
        SHARDSCOPE_EMIT(Detail::params, .kind = EventKind::param_status, .a = static_cast<std::uint32_t>(i));
        if (i % 2000 == 0) std::this_thread::sleep_for(1ms);
      }
    });
    emitter.join();
    // 40 bytes per event: at most 26,214 fit the queue's 1 MiB. The rest is counted once the publisher's
    // thread has taken it out of the ring.
    const auto deadline = Clock::now() + 10s;
    do {
      std::this_thread::sleep_for(10ms);
      dropped = publisher.dropped();
    } while (dropped < kEvents - 27'000 && Clock::now() < deadline);
    publisher.finish(0, "");
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("no collector answers at tcp://127.0.0.1:9"), std::string::npos) << said;
  EXPECT_GE(dropped, kEvents - 27'000);
  EXPECT_LE(dropped, kEvents);
  EXPECT_LT(Clock::now() - begin, 20s);
}

TEST(Publisher, ACollectorThatReadsLateGetsAllTheCountsRight) {
  BareCollector collector;
  PublisherOptions options = options_for(collector.endpoint);
  options.queue_bytes = 1U << 20;
  options.ring_events = 8192;
  constexpr std::uint64_t kEvents = 2'000'000;
  Taken taken;
  std::uint64_t dropped = 0;
  std::thread receiver;
  {
    Publisher publisher(options, tables());
    std::thread emitter([&] {
      for (std::uint64_t i = 0; i < kEvents; ++i) {
        SHARDSCOPE_EMIT(Detail::params, .kind = EventKind::param_status, .a = static_cast<std::uint32_t>(i));
      }
      SHARDSCOPE_EMIT(Detail::steps, .kind = EventKind::step_end, .a = 1);
    });
    emitter.join();
    // Only now does anybody read. Every event is either delivered or counted.
    receiver = std::thread([&] { take_until_the_end(collector, taken); });
    publisher.finish(0, "");
    receiver.join();  // the end comes after the last batch, so by now everything is counted
    dropped = publisher.dropped();
  }
  ASSERT_TRUE(taken.finish);
  EXPECT_TRUE(taken.in_sequence);
  EXPECT_GT(taken.dropped, 0U) << "the test is meant to overrun";
  EXPECT_EQ(taken.events.size() + taken.dropped, kEvents + 1);
  EXPECT_EQ(dropped, taken.dropped);
}

/// Looks are far apart where little happens: what overruns the ring within a moment is missing for that
/// moment.
TEST(Publisher, WhatIsDroppedIsMissingOnlyWhereItWas) {
  BareCollector collector;
  PublisherOptions options = options_for(collector.endpoint);
  options.ring_events = 1024;
  std::int64_t first = 0, last = 0, begin = 0, end = 0;
  std::uint64_t dropped = 0;
  bool whole = true;
  std::thread receiver([&] {
    for (;;) {
      const auto message = collector.receive(5000ms);
      if (!message || std::holds_alternative<wire::Finish>(message->body)) return;
      const auto* batch = std::get_if<wire::Batch>(&message->body);
      if (batch == nullptr || batch->dropped_here == 0) continue;
      begin = dropped == 0 ? batch->begin_ns : std::min(begin, batch->begin_ns);
      end = std::max(end, batch->end_ns);
      dropped += batch->dropped_here;
      for (const Event& event : batch->events)
        whole &= static_cast<std::int64_t>(event.ticks) < batch->end_ns;
    }
  });
  {
    Publisher publisher(options, tables());
    std::thread emitter([&] {
      const auto emit = [](std::uint32_t i) {
        SHARDSCOPE_EMIT(Detail::params, .kind = EventKind::param_status, .a = i);
      };
      emit(0);
      std::this_thread::sleep_for(300ms);
      first = monotonic_now_ns();
      for (std::uint32_t i = 0; i < 20'000; ++i) emit(i);
      last = monotonic_now_ns();
      std::this_thread::sleep_for(100ms);
      emit(1);
    });
    emitter.join();
    publisher.finish(0, "");
    receiver.join();
  }
  ASSERT_GT(dropped, 0U) << "the test is meant to overrun";
  constexpr std::int64_t kSlack = 200'000;  // of converting ticks
  EXPECT_GE(begin, first - kSlack);
  EXPECT_LE(end, last + kSlack);
  EXPECT_TRUE(whole) << "events behind it are known";
}

/// Minutes may lie between a kept beginning and the start. The rate of the first millisecond, taken back over
/// them, would be wrong by milliseconds; the pair of clocks that the beginning was kept with is not. This
/// pair is wrong on purpose, so that times show which of the two was used.
TEST(Publisher, AKeptBeginningIsTimedByTheClocksItWasKeptWith) {
  if (!invariant_counter()) GTEST_SKIP() << "ticks are nanoseconds on this machine";
  constexpr std::int64_t kWrong_ns = 300'000'000;
  BareCollector collector;
  PreattachBuffer kept{TickClock::sample(), RingRegistry::instance().dropped()};
  const std::int64_t kept_ns = kept.since.ns;
  kept.since.ns -= kWrong_ns;
  g_detail.store(static_cast<int>(Detail::params));
  emit<EventKind::step_begin>({.step = 7});
  std::this_thread::sleep_for(20ms);
  PublisherOptions options = options_for(collector.endpoint);
  options.kept = kept;
  Taken taken;
  std::thread receiver([&] { take_until_the_end(collector, taken); });
  Publisher(options, tables()).finish(0, "");
  receiver.join();
  ASSERT_EQ(taken.events.size(), 1U);
  EXPECT_EQ(taken.events[0].a, 7U);
  EXPECT_LT(static_cast<std::int64_t>(taken.events[0].ticks), kept_ns - kWrong_ns / 2);
}

TEST(Publisher, EmptyEndpointMeansOff) {
  Publisher publisher({}, tables());
  EXPECT_FALSE(enabled(Detail::steps));
  EXPECT_EQ(publisher.dropped(), 0U);
  publisher.message(Severity::info, "nothing receives it");
  publisher.finish(0, "");
}

TEST(Publisher, TellsAChangeOfDetailBeforeWhatItLetsThrough) {
  const std::string endpoint = "ipc://" + testing::TempDir() + "detail_" + std::to_string(getpid());
  zmq::context_t context;
  zmq::socket_t control = make_socket(context, Role::collector_control);
  control.bind(endpoints_of(endpoint).control);
  control.set(zmq::sockopt::rcvtimeo, 10'000);
  zmq::socket_t pull = make_socket(context, Role::collector_publish);
  pull.bind(endpoints_of(endpoint).publish);
  pull.set(zmq::sockopt::rcvtimeo, 10'000);
  PublisherOptions options = options_for(endpoint);
  options.detail = Detail::phases;
  std::optional<Publisher> publisher(std::in_place, options, tables());
  zmq::message_t route, hello;
  ASSERT_TRUE(control.recv(route) && control.recv(hello));
  auto set_detail = [&, id = std::uint64_t{0}](Detail detail) mutable {
    wire::RankCommand command;
    command.id = ++id;
    command.kind = wire::RankCommand::Kind::set_detail;
    command.detail = detail;
    const wire::Frame frame = wire::encode({{0, 1, 0, "test-run"}, command});
    control.send(zmq::buffer(route.data(), route.size()), zmq::send_flags::sndmore);
    control.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none);
    const auto until = Clock::now() + 10s;
    while (g_detail.load() != static_cast<int>(detail) && Clock::now() < until)
      std::this_thread::sleep_for(1ms);
  };
  for (const Detail detail : {Detail::modules, Detail::modules, Detail::steps}) {
    set_detail(detail);
    SHARDSCOPE_EMIT(Detail::modules, .kind = EventKind::module_end, .stream = StreamId::compute);
    SHARDSCOPE_EMIT(Detail::steps, .kind = EventKind::step_end);
  }
  publisher->finish(0, "");
  std::thread end([&] { publisher.reset(); });
  Taken taken;
  for (zmq::message_t message; !taken.finish && pull.recv(message);) {
    take_one(taken, *wire::decode(message.data(), message.size(), wire::From::rank_publish).message);
  }
  end.join();
  std::vector<EventKind> kinds;
  for (const Event& event : taken.events) kinds.push_back(event.kind);
  using K = EventKind;
  ASSERT_EQ(kinds, (std::vector<K>{K::detail_changed, K::module_end, K::step_end, K::module_end, K::step_end,
                                   K::detail_changed, K::step_end}))
      << "sent once where nothing changed";
  EXPECT_EQ(taken.events[0].a, static_cast<std::uint32_t>(Detail::phases));
  EXPECT_EQ(taken.events[0].code, static_cast<std::uint8_t>(Detail::modules));
  EXPECT_EQ(taken.events[5].a, static_cast<std::uint32_t>(Detail::modules));
  EXPECT_EQ(taken.events[5].code, static_cast<std::uint8_t>(Detail::steps));
  EXPECT_TRUE(std::is_sorted(taken.events.begin(), taken.events.end(),
                             [](const Event& a, const Event& b) { return a.ticks < b.ticks; }));
}

TEST(RankLink, TablesAskedForAgainAndAgainDoNotPileUp) {
  const std::string endpoint = "ipc://" + testing::TempDir() + "asked_" + std::to_string(getpid());
  zmq::context_t context;
  zmq::socket_t control = make_socket(context, Role::collector_control);
  control.bind(endpoints_of(endpoint).control);
  GateKeeper gate;
  RankLinkOptions options;
  options.endpoint = endpoint;  // where nothing receives what is published
  options.key_file = kNoKey;
  options.gate = &gate;
  options.detail = [] { return 3; };
  RankLink link(std::move(options), tables());
  std::string route;
  const auto hear = [&] {
    link.pump();
    zmq::message_t from, body;
    if (!control.recv(from, zmq::recv_flags::none) || !control.recv(body, zmq::recv_flags::none))
      std::abort();
    route = from.to_string();
    return wire::decode(body.data(), body.size(), wire::From::rank_control);
  };
  const auto say = [&](wire::Body body) {
    const wire::Frame frame = wire::encode({{0, 1, 0, "test-run"}, std::move(body)});
    control.send(zmq::buffer(route), zmq::send_flags::sndmore);
    control.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none);
  };
  static_cast<void>(hear());  // its hello
  constexpr int kAsked = 50;
  for (std::uint64_t ask = 1; ask <= kAsked; ++ask) {
    wire::RankCommand command;
    command.id = ask;
    command.kind = wire::RankCommand::Kind::resend_tables;
    say(command);
    say(wire::Ping{ask, 0, 0});  // answered when what came before has been taken
    for (bool answered = false; !answered;) {
      const wire::Decoded message_in = hear();
      const auto* pong = message_in.message ? std::get_if<wire::Pong>(&message_in.message->body) : nullptr;
      answered = pong != nullptr && pong->id == ask;
    }
    link.pump();
  }
  zmq::socket_t pull = make_socket(context, Role::collector_publish);
  pull.bind(endpoints_of(endpoint).publish);
  link.post(wire::Body(wire::Text{1, Severity::info, "the last"}));
  int tables_sent = 0;
  for (bool last = false; !last;) {
    link.pump();
    zmq::message_t message;
    if (!pull.recv(message, zmq::recv_flags::dontwait)) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    const wire::Decoded taken = wire::decode(message.data(), message.size(), wire::From::rank_publish);
    ASSERT_TRUE(taken.message) << taken.why;
    tables_sent += std::holds_alternative<wire::Tables>(taken.message->body);
    last = std::holds_alternative<wire::Text>(taken.message->body);
  }
  EXPECT_GE(tables_sent, 1);
  EXPECT_LE(tables_sent, 6) << "what sockets hold, one on its way and one that waits, of " << kAsked;
}

TEST(Publisher, DoesNotKeepADyingProcessAlive) {
  // With a collector that never reads and a full queue, SIGTERM's default action ends the process.
  BareCollector collector;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    Publisher publisher(options_for(collector.endpoint), tables());
    for (;;) {
      SHARDSCOPE_EMIT(Detail::params, .kind = EventKind::param_status);
    }
  }
  std::this_thread::sleep_for(300ms);
  const auto begin = Clock::now();
  kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST(Publisher, SignalsAreHandledOnTheProgramsOwnThreads) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    static pthread_t main_thread;
    main_thread = pthread_self();
    struct sigaction action {};
    action.sa_handler = [](int) { _exit(pthread_equal(pthread_self(), main_thread) != 0 ? 7 : 8); };
    sigaction(SIGUSR1, &action, nullptr);
    Publisher publisher(options_for("tcp://127.0.0.1:9"), tables());
    kill(getpid(), SIGUSR1);
    for (;;) pause();
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(EmissionCost, OfAShortRunIsSaidInMilliseconds) {
  EmissionCost cost{.events = 1000, .event_ns = 10, .elapsed_ns = 30'000'000, .publishing_cpu_ns = {}};
  EXPECT_NE(emission_cost_text(cost).find("% of 30.0 ms;"), std::string::npos) << emission_cost_text(cost);
  cost.elapsed_ns = 31'200'000'000;
  EXPECT_NE(emission_cost_text(cost).find("% of 31.2 s;"), std::string::npos) << emission_cost_text(cost);
}

}  // namespace
}  // namespace shardscope::instrumentation
