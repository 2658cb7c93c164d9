// Connections that are cut with messages on their way, and a collector that stalls: what ranks hold is
// not lost, and is not reported twice.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <future>

#include "app/store/recording.h"
#include "tests/app/collector/test_rank.h"
#include "tests/child_process.h"

namespace shardscope::collector {
namespace {

/// Descriptors of this process of the connections to a port of its own.
std::vector<int> connections_to(const std::string& endpoint) {
  const int port = std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
  std::vector<int> found;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in6 address{};
    socklen_t size = sizeof address;
    int listening = 0;
    socklen_t flag = sizeof listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &flag) != 0 || listening != 0) continue;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
    if (address.sin6_family != AF_INET6 && address.sin6_family != AF_INET) continue;
    if (ntohs(address.sin6_port) != port) continue;  // at the same place in both families
    size = sizeof address;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) found.push_back(fd);
  }
  return found;
}

/// Bytes that have arrived over them and lie unread in the kernel.
std::size_t unread(const std::vector<int>& connections) {
  std::size_t sum = 0;
  for (const int fd : connections) {
    int bytes = 0;
    EXPECT_EQ(ioctl(fd, FIONREAD, &bytes), 0);
    sum += static_cast<std::size_t>(bytes);
  }
  return sum;
}

/// Ends them as a network does that loses both hosts: what the kernel holds, sent and not read or not sent
/// yet, is gone. After shutdown() it would still arrive.
void cut(const std::vector<int>& connections) {
  const sockaddr none{.sa_family = AF_UNSPEC, .sa_data = {}};
  for (const int fd : connections) EXPECT_EQ(connect(fd, &none, sizeof none), 0);  // and resets the peer
}

constexpr std::uint64_t kLosses = 20;

/// As Rank::step(), of events that no collector sheds.
void unsheddable_step(Rank& rank, std::uint32_t number) {
  std::vector<Event> events;
  const std::int64_t begin = monotonic_now_ns();
  std::int64_t at = begin;
  events.push_back(event_of(EventKind::step_begin, at, StreamId::host, number));
  while (events.size() < kLosses - 1)
    events.push_back(event_of(EventKind::loss, ++at, StreamId::host, number));
  events.push_back(event_of(EventKind::step_end, ++at, StreamId::host, number));
  rank.link->push(std::move(events), 0, begin, at, 25);
  rank.link->pump();
}

TEST(Stall, WhatAConnectionTookWithItIsSentAgain) {
  CollectorOptions options = local();
  options.intake_bytes = 256U << 10;
  Collector collector(options);
  Rank rank(collector.publish_endpoint(), 0, 1);
  rank.step(0);
  rank.settle();
  std::uint32_t steps = 1;
  constexpr std::size_t kKernelBytes = 16U << 10;  // of some twenty messages; a small window may hold no more
  // Three cuts at least, and more until one has lost confirmations of messages that had arrived.
  for (int round = 0; round < 3 || (collector.status().repeated == 0 && round < 20); ++round) {
    // Nothing is received beyond intake_bytes: the queues fill, and then the connection. Not for a second:
    // the collector would begin to shed.
    auto hold = std::make_unique<IntakeHold>(collector);
    const std::vector<int> connections = connections_to(collector.publish_endpoint());
    ASSERT_EQ(connections.size(), 1U);
    // What only waits in the rank's own queue would not be lost with the connection.
    ASSERT_TRUE(rank.until(
        [&] {
          for (int i = 0; i < 20; ++i) unsheddable_step(rank, steps++);
          return unread(connections) > kKernelBytes;
        },
        60s));
    cut(connections);
    hold.reset();
    EXPECT_TRUE(rank.until([&] { return collector.status().messages >= steps; }, 60s));
  }
  rank.finish();
  const CollectorStatus status = collector.status();
  EXPECT_EQ(status.events, kEventsPerStep + (steps - 1) * kLosses);
  EXPECT_EQ(status.dropped, 0U);
  EXPECT_EQ(status.rejected, 0U);
  EXPECT_EQ(rank.link->shed(), 0U);
  EXPECT_TRUE(rank.until([&] { return rank.link->unsent_events() == 0; }));
  EXPECT_GT(status.repeated, 0U) << "it is not known how much of it had arrived";
  collector.stop();
  collector.read([&](const store::Store& store) {
    EXPECT_EQ(store.ranks()[0].lost_messages, 0U);
    EXPECT_TRUE(store.gaps().empty());
    EXPECT_EQ(store.steps().size(), steps);
    EXPECT_EQ(all_texts(store).find("did not arrive"), std::string::npos) << all_texts(store);
  });
}

/// A process that records until its ranks have ended.
int record(const std::string& path, int endpoint_to) {
  CollectorOptions options = local();
  options.record_path = path;
  Collector collector(options);
  std::array<char, 64> endpoint{};
  std::snprintf(endpoint.data(), endpoint.size(), "%s", collector.publish_endpoint().c_str());
  if (write(endpoint_to, endpoint.data(), endpoint.size()) != static_cast<ssize_t>(endpoint.size())) return 2;
  const bool over = eventually([&] { return collector.status().finished; }, 120s);
  collector.stop();
  return over && collector.status().recording_error.empty() && collector.status().stalled_s > 10 ? 0 : 3;
}

TEST(Stall, ACollectorThatIsStoppedForLongerThanConnectionsLastLosesNothing) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const std::string path =
      (std::filesystem::temp_directory_path() / ("stall-" + std::to_string(getpid()) + ".zscope")).string();
  const pid_t child = fork_bound();  // before there are threads
  if (child == 0) _exit(record(path, ends[1]));
  std::array<char, 64> endpoint{};
  ASSERT_EQ(read(ends[0], endpoint.data(), endpoint.size()), static_cast<ssize_t>(endpoint.size()));
  std::uint32_t steps = 0;
  {
    Rank rank(endpoint.data(), 0, 1);
    rank.step(steps++);
    rank.settle();
    kill(child, SIGSTOP);
    // As much as fills the kernel's buffers and ZeroMQ's queues, and goes on.
    const auto end = Clock::now() + 13s;
    std::vector<Event> block;
    while (Clock::now() < end) {
      std::vector<Event> events;
      const std::int64_t begin = monotonic_now_ns();
      std::int64_t at = begin;
      events.push_back(event_of(EventKind::step_begin, at, StreamId::host, steps));
      while (events.size() < 1000) events.push_back(event_of(EventKind::loss, ++at, StreamId::host, steps));
      events.push_back(event_of(EventKind::step_end, ++at, StreamId::host, steps));
      rank.link->push(std::move(events), 0, begin, at, 0);
      rank.link->pump();
      ++steps;
      std::this_thread::sleep_for(10ms);
    }
    kill(child, SIGCONT);
    EXPECT_EQ(rank.link->shed(), 0U);
    rank.finish();
  }
  int code = -1;
  waitpid(child, &code, 0);
  EXPECT_EQ(code, 0);
  close(ends[0]);
  close(ends[1]);
  store::RecordingInfo info;
  const store::Store store = store::open_recording(path, &info);
  EXPECT_TRUE(info.complete && info.problems.empty());
  ASSERT_EQ(store.ranks().size(), 1U);
  EXPECT_EQ(store.ranks()[0].events, kEventsPerStep + (steps - 1) * 1001);
  EXPECT_EQ(store.ranks()[0].lost_messages, 0U);
  EXPECT_EQ(store.ranks()[0].dropped, 0U);
  EXPECT_EQ(store.steps().size(), steps);
  const std::string texts = all_texts(store);
  EXPECT_NE(texts.find("the collector stalled for 1"), std::string::npos) << texts;
  EXPECT_EQ(texts.find("silent"), std::string::npos) << texts;
  EXPECT_EQ(texts.find("did not arrive"), std::string::npos) << texts;
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace shardscope::collector
