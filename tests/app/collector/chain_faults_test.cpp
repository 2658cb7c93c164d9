// A chain of collectors when things go wrong or have to be kept out: keys on each hop, pauses through a node,
// a node's collector that is killed, losses on either hop, a collector above that takes nothing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <zmq.hpp>

#include "app/collector/upstream.h"
#include "app/store/recording.h"
#include "instrumentation/keys.h"
#include "instrumentation/sockets.h"
#include "tests/app/collector/test_rank.h"
#include "tests/child_process.h"

namespace shardscope::collector {
namespace {

namespace fs = std::filesystem;

CollectorOptions node_of(const std::string& top) {
  CollectorOptions options = local();
  options.upstream = top;
  return options;
}

RunTables two_ranks(std::uint32_t rank) {
  RunTables tables = tables_of(rank, 2);
  tables.local_world = 2;
  return tables;
}

std::unique_ptr<RankLink> link_of(const std::string& endpoint, std::uint32_t rank, GateKeeper& gate,
                                  const std::string& key = {}) {
  RankLinkOptions options;
  options.endpoint = endpoint;
  options.key_file = key;
  options.gate = &gate;
  options.detail = [] { return 3; };
  return std::make_unique<RankLink>(std::move(options), two_ranks(rank));
}

/// A step as one message.
constexpr std::uint64_t kStepEvents = 12;
std::vector<Event> step_of(std::uint32_t step) {
  std::vector<Event> events;
  std::int64_t at = monotonic_now_ns();
  events.push_back(event_of(EventKind::step_begin, at, StreamId::host, step));
  for (std::uint32_t m = 0; m < 5; ++m) {
    events.push_back(event_of(EventKind::module_begin, ++at, StreamId::compute, m % 2));
    events.push_back(event_of(EventKind::module_end, ++at, StreamId::compute, m % 2));
  }
  events.push_back(event_of(EventKind::step_end, ++at, StreamId::host, step));
  return events;
}

void push(RankLink& link, std::uint32_t step) {
  std::vector<Event> events = step_of(step);
  const auto begin = static_cast<std::int64_t>(events.front().ticks);
  const auto end = static_cast<std::int64_t>(events.back().ticks);
  link.push(std::move(events), 0, begin, end, 0);
  link.pump();
}

/// Keys of one hop in a folder: the collector's, and one of a publisher.
class Keys {
 public:
  explicit Keys(const std::string& name)
      : folder_(testing::TempDir() + "chain_keys_" + name + std::to_string(getpid())) {
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
    KeyFile collector;
    collector.role = KeyRole::collector;
    collector.pair = make_key_pair();
    KeyFile publish;
    publish.role = KeyRole::publish;
    publish.pair = make_key_pair();
    publish.collector = collector.pair.public_key;
    collector.allowed.push_back({KeyRole::publish, publish.pair.public_key});
    write_key_file(folder_ + "/publish.key", publish);
    write_key_file(folder_ + "/collector.key", collector);
  }
  ~Keys() { fs::remove_all(folder_); }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::string publish() const { return folder_ + "/publish.key"; }

 private:
  std::string folder_;
};

TEST(ChainFaults, EachHopHasItsOwnKeys) {
  const Keys outer("top"), inner("node");
  CollectorOptions top_options = local();
  top_options.keys = outer.folder();
  Collector top(top_options);
  CollectorOptions options = node_of(top.publish_endpoint());
  options.keys = inner.folder();
  options.upstream_key = outer.publish();
  Collector node(options);
  GateKeeper gates[2];
  auto link = link_of(node.publish_endpoint(), 0, gates[0], inner.publish());
  // The key of the other hop opens neither door.
  auto stranger = link_of(node.publish_endpoint(), 1, gates[1], outer.publish());
  options.upstream_key = inner.publish();
  options.keys = inner.folder();
  Collector false_node(options);
  push(*link, 0);
  push(*stranger, 0);
  EXPECT_TRUE(eventually([&] {
    link->pump();
    stranger->pump();
    return top.status().events == kStepEvents && top.status().refused > 0 && node.status().refused > 0;
  })) << top.status().events
      << " " << top.status().refused << " " << node.status().refused;
  EXPECT_FALSE(stranger->collector_alive());
  EXPECT_EQ(node.status().events, kStepEvents);
  EXPECT_EQ(false_node.status().events, 0U);
}

TEST(ChainFaults, APauseAStepAndAResumeReachEveryRankThroughItsNode) {
  Collector top(local());
  Collector left(node_of(top.publish_endpoint())), right(node_of(top.publish_endpoint()));
  std::array<GateKeeper, 2> gates;
  std::array<std::unique_ptr<RankLink>, 2> links = {link_of(left.publish_endpoint(), 0, gates[0]),
                                                    link_of(right.publish_endpoint(), 1, gates[1])};
  std::atomic<bool> end{false};
  std::array<std::thread, 2> ranks;
  std::array<std::atomic<std::uint32_t>, 2> steps{};
  std::atomic<std::uint32_t> met{0};  // the ranks go through each step together, as collectives make them
  for (std::size_t r = 0; r < 2; ++r) {
    ranks[r] = std::thread([&, r] {
      for (std::uint32_t step = 0; !end; ++step) {
        gates[r].pass(GateKind::step, step);
        steps[r] = step;
        for (std::uint32_t module = 0; module < 3; ++module) gates[r].pass(GateKind::pre_forward, module);
        ++met;
        while (met < 2 * (step + 1) && !end) std::this_thread::yield();
      }
    });
  }
  Viewer viewer(top.view_endpoint());
  store::Store store;
  const auto until = [&](const std::function<bool()>& condition) {
    return eventually([&] {
      for (auto& link : links) link->pump();
      viewer.poll(store, 2ms);
      return condition();
    });
  };
  EXPECT_TRUE(until([&] { return top.status().ranks_connected == 2; }));
  viewer.send({.kind = Command::Kind::pause, .rule = {}, .detail = {}});
  EXPECT_TRUE(until([&] { return viewer.control().paused; })) << viewer.control().note;
  const std::uint64_t first = gates[0].passed();
  EXPECT_EQ(first, gates[1].passed());
  EXPECT_TRUE(gates[0].position().holding && gates[1].position().holding);
  // To the next step: every rank at the same gate again.
  viewer.send({.kind = Command::Kind::resume, .rule = {StopRule::Kind::step, 0, 0}, .detail = {}});
  EXPECT_TRUE(until([&] { return viewer.control().paused && viewer.control().gate > first; }))
      << viewer.control().note;
  EXPECT_EQ(gates[0].passed(), gates[1].passed());
  EXPECT_EQ(gates[0].position().kind, GateKind::step);
  const std::uint32_t at = steps[0];
  viewer.send({.kind = Command::Kind::resume, .rule = {}, .detail = {}});
  EXPECT_TRUE(until([&] { return steps[0] > at + 5 && steps[1] > at + 5; })) << "both go on";
  end = true;
  for (GateKeeper& gate : gates) gate.release_for_shutdown();
  for (std::thread& rank : ranks) rank.join();
}

/// A node's collector in a process of its own, to be killed. Made before this process has threads.
class NodeProcess {
 public:
  NodeProcess() {
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0) std::abort();
    to_ = down[1];
    from_ = up[0];
    child_ = fork_bound();
    if (child_ != 0) {
      close(down[0]);
      close(up[1]);
      return;
    }
    close(down[1]);
    char words[2][64] = {};
    if (read(down[0], words, sizeof words) != sizeof words) _exit(0);  // never begun
    CollectorOptions options = local(words[0]);
    options.upstream = words[1];
    Collector node(options);
    char endpoint[64] = {};
    std::snprintf(endpoint, sizeof endpoint, "%s", node.publish_endpoint().c_str());
    if (write(up[1], endpoint, sizeof endpoint) != sizeof endpoint) _exit(1);
    char more = 0;
    while (read(down[0], &more, 1) > 0) {
    }
    node.stop();
    _exit(0);
  }
  ~NodeProcess() {
    close(to_);
    close(from_);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;
  std::string begin(const std::string& listen, const std::string& upstream) {
    char words[2][64] = {};
    std::snprintf(words[0], sizeof words[0], "%s", listen.c_str());
    std::snprintf(words[1], sizeof words[1], "%s", upstream.c_str());
    EXPECT_EQ(write(to_, words, sizeof words), static_cast<ssize_t>(sizeof words));
    char endpoint[64] = {};
    EXPECT_EQ(read(from_, endpoint, sizeof endpoint), static_cast<ssize_t>(sizeof endpoint));
    return endpoint;
  }
  void kill() {
    ::kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
  }

 private:
  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
};

TEST(ChainFaults, AKilledNodeCollectorLeavesAGapAtMostAndTheRestIsWhole) {
  NodeProcess first, second;
  const std::string path = testing::TempDir() + "chain_killed_" + std::to_string(getpid()) + ".zscope";
  CollectorOptions options = local();
  options.record_path = path;
  std::uint32_t next = 0, lossless_from = 0;
  {
    Collector top(options);
    const std::string endpoint = first.begin("tcp://127.0.0.1:0", top.publish_endpoint());
    GateKeeper gates[2];
    std::array<std::unique_ptr<RankLink>, 2> links = {link_of(endpoint, 0, gates[0]),
                                                      link_of(endpoint, 1, gates[1])};
    const auto until = [&](const std::function<bool()>& condition) {
      return eventually(
          [&] {
            for (auto& link : links) link->pump();
            return condition();
          },
          30s);
    };
    const auto steps = [&](std::uint32_t count) {
      for (const std::uint32_t end = next + count; next < end; ++next) {
        for (auto& link : links) push(*link, next);
      }
    };
    steps(10);
    ASSERT_TRUE(until([&] { return top.status().events == 2 * 10 * kStepEvents; }));
    first.kill();
    steps(10);  // to nobody
    EXPECT_FALSE(top.status().finished) << "the run goes on";
    ASSERT_EQ(second.begin(endpoint, top.publish_endpoint()), endpoint);
    // What was on its way to the killed one is lost with it. From when the second one passes on what both
    // ranks send, nothing is.
    const auto received = [&] {
      std::array<std::uint64_t, 2> events{};
      top.read([&](const store::Store& store) {
        for (const store::RankRow& row : store.ranks()) events.at(row.rank) = row.events;
      });
      return events;
    };
    const auto before = received();
    auto last = std::chrono::steady_clock::now();
    ASSERT_TRUE(until([&] {
      const auto now = std::chrono::steady_clock::now();
      if (now - last > 20ms) {
        steps(1);
        last = now;
      }
      const auto events = received();
      return events[0] > before[0] && events[1] > before[1];
    }));
    lossless_from = next;
    steps(10);
    for (auto& link : links) link->post(wire::Body(wire::Finish{0, monotonic_now_ns(), 0, "done"}));
    ASSERT_TRUE(until([&] { return links[0]->finish_received() && links[1]->finish_received(); }));
    ASSERT_TRUE(until([&] { return top.status().finished; }));
    for (const auto& [reason, count] : top.status().rejected_by) ADD_FAILURE() << count << " by " << reason;
    EXPECT_EQ(links[0]->shed() + links[1]->shed(), 0U);
  }
  store::RecordingInfo info;
  const store::Store store = store::open_recording(path, &info);
  EXPECT_TRUE(info.complete && info.problems.empty());
  ASSERT_EQ(store.ranks().size(), 2U);
  for (const store::RankRow& row : store.ranks()) {
    // A step was one message: what is not there was counted as lost, beside tables that were sent again.
    EXPECT_LE(row.events, next * kStepEvents);
    EXPECT_GE(row.events + row.lost_messages * kStepEvents, next * kStepEvents);
    EXPECT_EQ(row.exit_message, "done");
    std::uint64_t in_gaps = 0;
    for (const store::Gap& gap : store.gaps()) in_gaps += gap.rank == row.rank ? gap.messages : 0;
    EXPECT_EQ(in_gaps, row.lost_messages);
    if (row.events < next * kStepEvents) {
      EXPECT_GT(in_gaps, 0U) << "the gap is shown";
    }
  }
  std::vector<std::uint32_t> seen;
  for (const store::StepRow& step : store.steps()) seen.push_back(step.step);
  for (std::uint32_t step = 0; step < next; ++step) {
    if (step >= 10 && step < lossless_from) continue;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), step), 1) << step;
  }
  fs::remove(path);
}

/// What a rank or a node's collector says, message by message, with any numbers.
class Raw {
 public:
  Raw(const std::string& endpoint, std::uint64_t incarnation)
      : publish_(make_socket(context_, Role::rank_publish, local_key(endpoint, KeyRole::publish))),
        control_(make_socket(context_, Role::rank_control, local_key(endpoint, KeyRole::publish))) {
    publish_.connect(endpoints_of(endpoint).publish);
    control_.connect(endpoints_of(endpoint).control);
    header_.incarnation = incarnation;
    header_.run_id = "collector-test";
  }
  void control(wire::Body body, std::uint32_t rank = 0) {
    header_.rank = rank;
    send(control_, std::move(body), 0);
    header_.rank = 0;
  }
  void publish(std::uint64_t sequence, wire::Body body) { send(publish_, std::move(body), sequence); }
  /// Whether a command of this kind is among what has been said to it since.
  bool was_told(wire::RankCommand::Kind kind) {
    bool reported = false;
    zmq::message_t message;
    while (control_.recv(message, zmq::recv_flags::dontwait)) {
      const wire::Decoded decoded =
          wire::decode(message.data(), message.size(), wire::From::collector_control);
      if (!decoded.message) continue;
      const auto* command = std::get_if<wire::RankCommand>(&decoded.message->body);
      reported |= command != nullptr && command->kind == kind;
    }
    return reported;
  }

 private:
  void send(zmq::socket_t& socket, wire::Body body, std::uint64_t sequence) {
    header_.sequence = sequence;
    const wire::Frame frame = wire::encode({header_, std::move(body)});
    EXPECT_TRUE(socket.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none));
  }
  zmq::context_t context_;
  zmq::socket_t publish_, control_;
  wire::Header header_;
};

wire::Batch batch_of(std::uint32_t step) {
  wire::Batch batch;
  batch.events = step_of(step);
  batch.begin_ns = static_cast<std::int64_t>(batch.events.front().ticks);
  batch.end_ns = static_cast<std::int64_t>(batch.events.back().ticks);
  return batch;
}

/// Messages that the top counts as lost: all, and those between collectors.
std::pair<std::uint64_t, std::uint64_t> lost_at(const Collector& top) {
  std::pair<std::uint64_t, std::uint64_t> out;
  top.read([&](const store::Store& store) {
    for (const store::Gap& gap : store.gaps()) {
      out.first += gap.messages;
      out.second += gap.messages_between;
    }
  });
  return out;
}

TEST(ChainFaults, LossesAreCountedOnTheHopWhereTheyHappened) {
  using Lost = std::pair<std::uint64_t, std::uint64_t>;
  {
    Collector top(local());
    Collector node(node_of(top.publish_endpoint()));
    Raw rank(node.publish_endpoint(), 7);
    rank.control(wire::Hello{2, 0, "elsewhere", clock_identity(), false});
    rank.publish(0, wire::Tables{two_ranks(0)});
    rank.publish(1, batch_of(0));
    rank.publish(4, batch_of(1));
    EXPECT_TRUE(eventually([&] { return lost_at(top) == Lost(2, 0); })) << "two between rank and node";
    EXPECT_EQ(top.status().events, 2 * kStepEvents);
  }
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  node.control(wire::RelayHello{"node", clock_identity(), {}});
  node.control(wire::Hello{2, 0, "elsewhere", clock_identity(), true});
  EXPECT_TRUE(eventually([&] { return top.status().ranks_connected == 1; }));
  node.publish(0, wire::Tables{two_ranks(0)});
  wire::Batch batch = batch_of(0);
  batch.relay = wire::Relay{.source_incarnation = 7, .source_first = 0, .source_last = 1};
  node.publish(1, batch);
  batch = batch_of(1);
  // One message of the rank did not reach the node, three of the node's did not reach the top.
  batch.relay = wire::Relay{.source_incarnation = 7, .source_first = 2, .source_last = 6, .lost_total = 1};
  node.publish(5, batch);
  EXPECT_TRUE(eventually([&] { return lost_at(top) == Lost(4, 3); }))
      << lost_at(top).first << " " << lost_at(top).second;
}

/// What a node says for its ranks stands for what each would say, and only for those that it names.
TEST(ChainFaults, ARankIsThereWhileItsNodeSaysSo) {
  Collector top(local());
  Raw node(top.publish_endpoint(), 9);
  const auto greet = [&] { node.control(wire::RelayHello{"node", clock_identity(), {{0, 1}}}); };
  greet();
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    node.control(wire::Hello{2, 0, "elsewhere", clock_identity(), true}, rank);
  ASSERT_TRUE(eventually([&] { return top.status().ranks_connected == 2; }));
  EXPECT_TRUE(eventually(
      [&] {
        greet();
        return top.status().ranks_connected == 1;
      },
      20s))
      << "rank 1 says nothing, and its node does not name it";
  for (int i = 0; i < 20; ++i) {
    greet();
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(top.status().ranks_connected, 1U);
}

TEST(ChainFaults, ACommandReachesARankThatHasPublishedNothingYet) {
  Collector top(local());
  Collector node(node_of(top.publish_endpoint()));
  Raw rank(node.publish_endpoint(), 7);
  Viewer viewer(top.view_endpoint());
  store::Store store;
  ASSERT_TRUE(follow(viewer, store, [&] {
    rank.control(wire::Hello{2, 0, "elsewhere", clock_identity(), false});
    return top.status().ranks_connected == 1;
  }));
  viewer.send({.kind = Command::Kind::set_detail, .rule = {}, .detail = Detail::phases});
  EXPECT_TRUE(follow(viewer, store, [&] { return rank.was_told(wire::RankCommand::Kind::set_detail); }));
}

TEST(ChainFaults, ARankThatComesBackAgainAndAgainIsCountedWhereItCannotBeKept) {
  constexpr std::uint64_t kProcesses = 3 * Upstream::kMostReplaced;
  const std::string above = "ipc://" + testing::TempDir() + "above_" + std::to_string(getpid());
  Collector node(node_of(above));  // which is not there yet
  {
    std::uint64_t process = 0;
    for (; process < kProcesses; ++process) {
      Raw rank(node.publish_endpoint(), 100 + process);
      rank.control(wire::Hello{2, 0, "elsewhere", clock_identity(), false});
      rank.publish(0, wire::Tables{two_ranks(0)});
      rank.publish(1, batch_of(0));
      ASSERT_TRUE(eventually([&] { return node.status().events == (process + 1) * kStepEvents; }));
    }
  }
  const std::uint64_t abandoned = (kProcesses - 1 - Upstream::kMostReplaced) * kStepEvents;
  EXPECT_TRUE(eventually([&] { return node.status().shed_upstream == abandoned; }))
      << node.status().shed_upstream << ", not " << abandoned;
  CollectorOptions options = local();
  options.listen = above;
  Collector top(options);
  EXPECT_TRUE(eventually([&] { return top.status().events == kProcesses * kStepEvents - abandoned; }, 20s))
      << top.status().events;
  const auto counted = [&] {
    std::uint64_t events = 0;
    top.read([&](const store::Store& store) {
      for (const store::Gap& gap : store.gaps()) events += gap.events;
    });
    return events;
  };
  EXPECT_TRUE(eventually([&] { return counted() == abandoned; })) << counted() << ", not " << abandoned;
  top.read([&](const store::Store& store) {
    EXPECT_NE(all_texts(store).find("were discarded by its node's collector"), std::string::npos);
  });
}

TEST(ChainFaults, ANodeKeepsStepsAndWatermarksWhenTheCollectorAboveTakesNothing) {
  CollectorOptions options = node_of("tcp://127.0.0.1:1");  // where nobody listens
  options.intake_bytes = 1U << 20;
  options.linger_s = 0;
  Collector node(options);
  GateKeeper gate;
  auto link = link_of(node.publish_endpoint(), 0, gate);
  constexpr std::uint32_t kSteps = 2000;
  for (std::uint32_t step = 0; step < kSteps; ++step) push(*link, step);
  // Far more than its part of the bound: modules are shed, what is left of 2,000 steps is not, and when that
  // is over the bound too the rank has to wait.
  EXPECT_TRUE(eventually([&] {
    link->pump();
    return node.status().shed_upstream > 0;
  }));
  std::uint64_t events = 0;
  EXPECT_TRUE(eventually([&] {
    link->pump();
    const std::uint64_t now = node.status().events;
    return std::exchange(events, now) == now && link->queued_bytes() > 0;
  })) << "it receives no more than it can keep";
  EXPECT_LE(node.status().shed_upstream, node.status().events / kStepEvents * (kStepEvents - 2));
  EXPECT_LT(node.status().events, kSteps * kStepEvents);
}

}  // namespace
}  // namespace shardscope::collector
