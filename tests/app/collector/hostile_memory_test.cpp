// The bound on a collector's memory holds against peers that mean it no good: viewers that take nothing, and
// messages that never end.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <vector>
#include <zmq.hpp>

#include "app/collector/connections.h"
#include "app/collector/frame_pack.h"
#include "app/store/chunk.h"
#include "instrumentation/sockets.h"
#include "tests/app/collector/raw_socket.h"
#include "tests/app/collector/test_rank.h"
#include "tests/child_process.h"
#include "tests/resident_memory.h"

namespace shardscope::collector {
namespace {

constexpr std::size_t kMiB = 1U << 20;

double in_mib(std::size_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); }

/// A child of its own that begins when it is given a collector's endpoint.
class Attacker {
 public:
  /// `attack` returns the exit status.
  explicit Attacker(int (*attack)(const std::string& endpoint)) {
    EXPECT_EQ(pipe(ends_.data()), 0);
    child_ = fork_bound();
    if (child_ != 0) return;
    std::array<char, 64> endpoint{};
    if (read(ends_[0], endpoint.data(), endpoint.size()) != static_cast<ssize_t>(endpoint.size())) _exit(4);
    _exit(attack(endpoint.data()));
  }
  ~Attacker() {
    kill(child_, SIGKILL);
    if (!ended_) waitpid(child_, nullptr, 0);
    close(ends_[0]);
    close(ends_[1]);
  }
  Attacker(const Attacker&) = delete;
  Attacker& operator=(const Attacker&) = delete;
  void begin(const std::string& endpoint) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%s", endpoint.c_str());
    ASSERT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] bool ended() {
    int code = 0;
    if (!ended_ && waitpid(child_, &code, WNOHANG) == child_) {
      ended_ = true;
      EXPECT_EQ(code, 0);
    }
    return ended_;
  }

 private:
  std::array<int, 2> ends_{};
  pid_t child_ = -1;
  bool ended_ = false;
};

constexpr std::size_t kViewers = 24;

/// Viewers that ask and ask for the run from its beginning, and read nothing.
int ask_and_read_nothing(const std::string& endpoint) {
  zmq::context_t context;
  std::vector<zmq::socket_t> sockets;
  for (std::size_t i = 0; i < kViewers; ++i) {
    sockets.push_back(make_socket(context, Role::viewer));
    sockets.back().set(zmq::sockopt::rcvhwm, 1);
    sockets.back().set(zmq::sockopt::rcvbuf, 4096);
    sockets.back().connect(endpoints_of(endpoint).view);
  }
  for (std::uint64_t round = 1;; ++round) {
    for (std::size_t i = 0; i < kViewers; ++i) {
      const wire::Frame frame = wire::encode({{0, 1000 + i, round, ""}, wire::ViewPoll{}});
      (void)sockets[i].send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::dontwait);
    }
    usleep(20'000);
  }
}

/// Events that do not compress to nothing.
void publish_noise(Rank& rank, std::uint32_t steps) {
  std::uint64_t noise = 1;
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::vector<Event> events;
    const std::int64_t begin = monotonic_now_ns();
    std::int64_t at = begin;
    events.push_back(event_of(EventKind::step_begin, at, StreamId::host, step));
    for (int i = 0; i < 1000; ++i) {
      noise = noise * 6364136223846793005U + 1442695040888963407U;
      events.push_back(
          event_of(EventKind::memory_alloc, ++at, StreamId::host, static_cast<std::uint32_t>(i)));
      events.back().v0 = static_cast<std::int64_t>(noise >> 2U);
      events.back().v1 = static_cast<std::int64_t>(noise >> 3U);
    }
    events.push_back(event_of(EventKind::step_end, ++at, StreamId::host, step));
    rank.link->push(std::move(events), 0, begin, at, 25);
    if (step % 50 == 49) rank.settle();  // before its queue sheds
  }
}

TEST(HostileMemory, ViewersThatReadNothingCostALittleEachAndAreCutOff) {
  Attacker attacker(ask_and_read_nothing);
  CollectorOptions options = open_to_all();
  options.viewers.patience_s = 1;
  Collector collector(options);
  Rank rank(collector.publish_endpoint(), 0, 1);
  publish_noise(rank, 2000);
  rank.settle();
  ASSERT_TRUE(eventually([&] { return collector.status().events == 2000 * 1002; }, 60s));
  const std::size_t before = resident_bytes();
  std::size_t most = before;
  attacker.begin(collector.publish_endpoint());
  const auto look = [&] { most = std::max(most, resident_bytes()); };
  // A viewer that reads sees the whole run meanwhile.
  {
    Viewer viewer(collector.view_endpoint());
    store::Store store;
    EXPECT_TRUE(follow(
        viewer, store,
        [&] {
          look();
          return store.event_count() == 2000 * 1002;
        },
        60s));
  }
  const std::size_t with_viewer = most;
  EXPECT_TRUE(eventually(
      [&] {
        look();
        return collector.status().stalled >= kViewers;
      },
      60s))
      << collector.status().stalled;
  std::printf(
      "%zu viewers that read nothing: %.1f MiB more, %.1f MiB of them while one that reads was there\n",
      kViewers, in_mib(most - before), in_mib(with_viewer - before));
  // The good viewer's store and what it has not taken yet are in this process.
  EXPECT_LE(most - with_viewer, options.viewers.bytes);
  EXPECT_LE(most - before, memory_bound(options, 1, 1));
  rank.finish();
  EXPECT_EQ(rank.link->shed(), 0U);
  collector.read([](const store::Store& store) {
    EXPECT_EQ(store.ranks()[0].lost_messages, 0U);
    EXPECT_NE(all_texts(store).find("cut off a viewer"), std::string::npos) << all_texts(store);
  });
  // One text in a while, but all of them are counted in texts.
  collector.stop();
  std::uint64_t said = 0;
  collector.read([&](const store::Store& store) {
    for (const store::Message& message : store.messages()) {
      if (message.text.find("cut off a viewer") == std::string::npos) continue;
      const std::size_t more = message.text.find("the last of ");
      said += more == std::string::npos ? 1 : std::stoull(message.text.substr(more + 12));
    }
  });
  EXPECT_EQ(said, collector.status().stalled);
}

TEST(HostileMemory, AViewerThatIsOnlySlowIsNotCutOff) {
  CollectorOptions options = open_to_all();
  options.viewers.patience_s = 1;
  options.viewers.bytes = kMiB;
  Collector collector(options);
  Rank rank(collector.publish_endpoint(), 0, 1);
  publish_noise(rank, 200);
  rank.settle();
  ASSERT_TRUE(eventually([&] { return collector.status().events == 200 * 1002; }, 60s));
  zmq::context_t context;
  zmq::socket_t socket = make_socket(context, Role::viewer);
  socket.set(zmq::sockopt::rcvtimeo, 5000);
  socket.connect(endpoints_of(collector.publish_endpoint()).view);
  wire::ViewPoll poll;
  std::uint64_t request = 0, events = 0;
  for (int i = 0; i < 1000 && events < 200 * 1002; ++i) {
    const wire::Frame frame = wire::encode({{0, 77, ++request, ""}, poll});
    ASSERT_TRUE(socket.send(zmq::const_buffer(frame.data(), frame.size()), zmq::send_flags::none));
    zmq::message_t message;
    ASSERT_TRUE(socket.recv(message)) << "no answer to " << request;
    const wire::Decoded decoded = wire::decode(message.data(), message.size(), wire::From::collector_view);
    ASSERT_TRUE(decoded.message);
    const auto& reply = std::get<wire::ViewReply>(decoded.message->body);
    for (const wire::ViewItem& item : reply.items) {
      if (item.kind != wire::ViewItem::Kind::chunk) continue;
      events += store::Chunk::decode(reinterpret_cast<const std::byte*>(item.data.data()), item.data.size())
                    .events.size();
    }
    poll = {reply.log, reply.static_cursor, reply.cursor, reply.rank_revision, true, reply.receipt};
    if (i < 3) std::this_thread::sleep_for(800ms);
  }
  EXPECT_EQ(events, 200U * 1002U);
  EXPECT_EQ(collector.status().stalled, 0U);
}

/// Writes all of it; false: the other side has closed, or takes nothing for ten seconds.
bool write_all(int fd, const char* data, std::size_t bytes) {
  while (bytes != 0) {
    pollfd item{fd, POLLOUT | POLLRDHUP, 0};
    if (::poll(&item, 1, 10'000) <= 0 || (item.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return false;
    const ssize_t done = send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done < 0 && errno == EAGAIN) continue;
    if (done <= 0) return false;
    data += done;
    bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

/// A connection that speaks ZMTP 3.0 without a key up to its socket type.
int greet(const std::string& endpoint, const std::string& type, bool ready) {
  const int fd = connect_raw(endpoint);
  if (fd < 0) return -1;
  const std::string greeting = null_greeting(), command = ready_command(type);
  if (!write_all(fd, greeting.data(), greeting.size())) return -1;
  if (!ready) return fd;
  if (!write_all(fd, command.data(), command.size())) return -1;
  // What comes before the other side is ready breaks the handshake.
  std::string got;
  while (got.find("READY") == std::string::npos) {
    std::array<char, 256> bytes{};
    const ssize_t n = recv(fd, bytes.data(), bytes.size(), 0);
    if (n <= 0) return -1;
    got.append(bytes.data(), static_cast<std::size_t>(n));
  }
  return fd;
}

std::string head(std::uint8_t flags, std::uint64_t bytes) {
  std::string out(1, static_cast<char>(flags));
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>((bytes >> shift) & 0xFFU);
  return out;
}

constexpr std::uint8_t kMoreLong = 3, kCommandLong = 6;

/// Up to 1.5 GiB in frames of a message that does not end. Ends when the collector has had enough.
int endless(const std::string& endpoint, const std::string& type, std::size_t frame) {
  const int fd = greet(endpoint, type, true);
  if (fd < 0) return 2;
  const std::string data(frame, 'x'), begin = head(kMoreLong, frame);
  for (std::size_t sent = 0; sent < 1536 * kMiB; sent += frame) {
    if (!write_all(fd, begin.data(), begin.size()) || !write_all(fd, data.data(), data.size())) return 0;
  }
  return 3;
}
int endless_to_view(const std::string& endpoint) {
  return endless(endpoints_of(endpoint).view, "DEALER", kMiB / 2);
}
int endless_to_control(const std::string& endpoint) {
  return endless(endpoints_of(endpoint).control, "DEALER", kMiB / 2);
}
int endless_to_publish(const std::string& endpoint) {
  return endless(endpoints_of(endpoint).publish, "PUSH", kMiB);
}

/// The same after a whole message, and no faster than it is read: at a look hardly a byte of it waits.
int slowly_to_view(const std::string& endpoint) {
  constexpr std::size_t kFrame = 60'000;
  const int fd = greet(endpoints_of(endpoint).view, "DEALER", true);
  if (fd < 0) return 2;
  const std::string data = head(kMoreLong, kFrame) + std::string(kFrame, 'x');
  const std::string whole("\0\4word", 6);
  if (!write_all(fd, whole.data(), whole.size())) return 2;
  for (std::size_t sent = 0; sent < 512 * kMiB; sent += data.size()) {
    if (!write_all(fd, data.data(), data.size())) return 0;
    std::this_thread::sleep_for(1ms);
  }
  return 3;
}

/// Eight peers that never shake hands; each sends almost the longest frame there may be.
int long_greetings(const std::string& endpoint) {
  constexpr std::size_t kFrame = 250 * kMiB;
  std::array<int, 8> peers{};
  const std::string begin = head(kCommandLong, kFrame), data(kMiB, 'x');
  for (int& fd : peers) {
    fd = greet(endpoints_of(endpoint).publish, "", false);
    if (fd < 0 || !write_all(fd, begin.data(), begin.size())) return 2;
  }
  std::size_t cut = 0;
  for (std::size_t sent = 0; sent < 240 * kMiB; sent += data.size()) {
    for (int& fd : peers) {
      if (fd < 0 || write_all(fd, data.data(), data.size())) continue;
      close(fd);
      fd = -1;
      ++cut;
    }
  }
  return cut >= 5 ? 0 : 3;
}

void attack(int (*how)(const std::string& endpoint), const std::string& listen = "tcp://127.0.0.1:0") {
  Attacker attacker(how);
  CollectorOptions options = open_to_all();
  options.listen = listen;
  Collector collector(options);
  Rank rank(collector.publish_endpoint(), 0, 1);
  rank.step(0);
  rank.settle();
  const std::size_t before = resident_bytes();
  std::size_t most = before;
  attacker.begin(collector.publish_endpoint());
  std::uint32_t step = 1;
  EXPECT_TRUE(eventually(
      [&] {
        rank.step(step++);
        most = std::max(most, resident_bytes());
        return attacker.ended();
      },
      60s));
  std::printf("%.1f MiB more than before, %zu connections cut off\n", in_mib(most - before),
              static_cast<std::size_t>(collector.status().flooding));
  // A peer alone that is found by what it has under way costs no more than that.
  const ConnectionWatch::Limits limits;
  const std::size_t bound = how == slowly_to_view ? limits.least_estimated : limits.in_all;
  EXPECT_LE(most - before, bound + ConnectionWatch::kBetweenLooks + 16 * kMiB);
  EXPECT_TRUE(eventually([&] { return collector.status().flooding > 0; }));
  rank.settle();
  rank.finish();
  EXPECT_TRUE(rank.link->finish_received());
  EXPECT_TRUE(eventually([&] { return collector.status().events == step * kEventsPerStep; }));
}

/// The bound on what is taken in is looked at between messages of the socket.
TEST(HostileMemory, APackLongerThanAnyNodesIsNotTakenIn) {
  Collector collector(open_to_all());
  zmq::context_t context;
  zmq::socket_t socket = make_socket(context, Role::rank_publish);
  socket.connect(collector.publish_endpoint());
  FramePack pack;
  wire::Batch batch;
  for (int i = 0; i < 4000; ++i) batch.events.push_back(event_of(EventKind::tokens, 1000 + i));
  for (std::uint64_t sequence = 0; sequence < 200; ++sequence) {
    const wire::Frame frame = wire::encode({{0, 7, sequence, "collector-test"}, batch});
    pack.add({frame.data(), frame.size()});
  }
  const std::vector<std::uint8_t> bytes = pack.take();
  ASSERT_TRUE(socket.send(zmq::const_buffer(bytes.data(), bytes.size()), zmq::send_flags::none));
  EXPECT_TRUE(eventually([&] { return collector.status().rejected_by["garbage"] == 1; }));
  EXPECT_EQ(collector.status().events, 0U);
}

TEST(HostileMemory, AMessageToTheViewersPortThatNeverEndsIsCutOff) { attack(endless_to_view); }
TEST(HostileMemory, AMessageToTheControlPortThatNeverEndsIsCutOff) { attack(endless_to_control); }
TEST(HostileMemory, AMessageToThePublishingPortThatNeverEndsIsCutOff) { attack(endless_to_publish); }
TEST(HostileMemory, LongFramesBeforeAHandshakeAreBoundedInAll) { attack(long_greetings); }

/// The same over a socket file, where the kernel counts nothing ([Note: bytes over ipc]).
struct HostileMemoryOverIpc : testing::TestWithParam<int (*)(const std::string&)> {};

TEST_P(HostileMemoryOverIpc, IsBoundedAsWell) {
  const auto file = std::filesystem::temp_directory_path() / ("hostile_memory-" + std::to_string(getpid()));
  attack(GetParam(), "ipc://" + file.string());
}

INSTANTIATE_TEST_SUITE_P(Attacks, HostileMemoryOverIpc,
                         testing::Values(endless_to_view, endless_to_control, endless_to_publish,
                                         long_greetings, slowly_to_view));

}  // namespace
}  // namespace shardscope::collector
