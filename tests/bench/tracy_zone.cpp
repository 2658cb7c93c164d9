// A begin/end pair of ours beside a zone of Tracy's real client: same process, same thread pinned to one
// core, in turns. Built and run by tracy_zone.py, which says where Tracy's sources come from; nothing of
// Tracy is kept here.
//
// Tracy's client queues without a bound while no server is connected, so a server that throws everything away
// is connected: both sides emit into queues that a thread of theirs empties, as in use.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "common/TracyProtocol.hpp"
#include "common/TracyVersion.hpp"
#include "instrumentation/clock.h"
#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"
#include "tracy/Tracy.hpp"

namespace {

using namespace shardscope::instrumentation;

constexpr int kBatch = 1000;
constexpr int kTurns = 2000;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

/// Connects to the client in this process as Tracy's server would; returns the socket.
int connect_to_client() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(TRACY_DATA_PORT);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int attempt = 0; attempt < 200; ++attempt) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) fail("socket");
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      const std::uint32_t version = tracy::ProtocolVersion;
      if (send(fd, tracy::HandshakeShibboleth, tracy::HandshakeShibbolethSize, MSG_NOSIGNAL) < 0 ||
          send(fd, &version, sizeof version, MSG_NOSIGNAL) < 0) {
        fail("handshake");
      }
      std::uint8_t status = 0;
      if (recv(fd, &status, 1, MSG_WAITALL) != 1) fail("handshake");
      if (status != tracy::HandshakeWelcome) {
        std::fprintf(stderr, "Tracy's client answered %d to the handshake\n", status);
        std::exit(1);
      }
      return fd;
    }
    close(fd);
    usleep(50'000);
  }
  fail("connect to Tracy's client");
}

__attribute__((noinline)) void empty_body(std::uint32_t i) { asm volatile("" ::"r"(i)); }
__attribute__((noinline)) void two_stamps(std::uint32_t) {
  const std::uint64_t begin = read_ticks(true), end = read_ticks(true);
  asm volatile("" ::"r"(begin), "r"(end));
}
__attribute__((noinline)) void our_pair(std::uint32_t i) {
  SHARDSCOPE_EMIT(Detail::modules, .kind = EventKind::module_begin, .stream = StreamId::compute, .a = i,
                  .b = 7);
  SHARDSCOPE_EMIT(Detail::modules, .kind = EventKind::module_end, .stream = StreamId::compute, .a = i,
                  .b = 7);
}
__attribute__((noinline)) void tracy_zone(std::uint32_t i) {
  ZoneScopedN("module");
  asm volatile("" ::"r"(i));
}

double ns_per_tick() {
  const std::int64_t ns = monotonic_now_ns();
  const std::uint64_t ticks = read_ticks(true);
  usleep(100'000);
  return static_cast<double>(monotonic_now_ns() - ns) / static_cast<double>(read_ticks(true) - ticks);
}

double quantile(std::vector<double>& values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  if (!invariant_counter()) {
    std::fprintf(stderr, "no invariant time-stamp counter here: the two would not read the same clock\n");
    return 1;
  }
  const int core = argc > 1 ? std::atoi(argv[1]) : 0;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> discarded{0};
  const int server = connect_to_client();
  std::thread reader([&] {
    std::vector<char> bytes(1U << 20);
    for (;;) {
      const ssize_t got = recv(server, bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      discarded.fetch_add(static_cast<std::uint64_t>(got));
    }
  });
  std::thread drain([&] {
    std::vector<Event> events;
    while (!stop.load()) {
      events.clear();
      RingRegistry::instance().drain(events);
      usleep(4000);
    }
  });
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(core), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) fail("pinning to a core");
  g_detail.store(static_cast<int>(Detail::params));

  struct Case {
    const char* name;
    void (*call)(std::uint32_t);
    std::vector<double> ns;
  };
  std::array<Case, 4> cases{{{"empty call", empty_body, {}},
                             {"two time stamps", two_stamps, {}},
                             {"begin/end pair of ours", our_pair, {}},
                             {"one Tracy zone", tracy_zone, {}}}};
  const double scale = ns_per_tick() / kBatch;
  std::mt19937 random(1);
  std::array<int, 4> order{0, 1, 2, 3};
  std::vector<double> ratio, saved;
  int full = 0;
  for (int turn = -50; turn < kTurns; ++turn) {  // the first ones make the queues' memory
    std::shuffle(order.begin(), order.end(), random);
    std::array<double, 4> took{};
    const std::uint64_t dropped = RingRegistry::instance().dropped();
    for (const int which : order) {
      void (*call)(std::uint32_t) = cases[static_cast<std::size_t>(which)].call;
      for (std::uint32_t i = 0; i < 16; ++i) call(i);
      const std::uint64_t begin = read_ticks(true);
      for (std::uint32_t i = 0; i < kBatch; ++i) call(i);
      took[static_cast<std::size_t>(which)] = static_cast<double>(read_ticks(true) - begin) * scale;
      usleep(200);
    }
    if (turn < 0) continue;
    if (RingRegistry::instance().dropped() != dropped) {
      ++full;  // a drop is cheaper than an event
      continue;
    }
    for (std::size_t i = 0; i < cases.size(); ++i) cases[i].ns.push_back(took[i]);
    ratio.push_back(took[2] / took[3]);
    saved.push_back(took[2] - took[3]);
  }
  g_detail.store(-1);
  stop.store(true);
  drain.join();
  const bool connected = TracyIsConnected;
  shutdown(server, SHUT_RDWR);
  reader.join();
  std::printf(
      "core %d, %d turns of %d calls each, %d left out because our ring was full; Tracy %d.%d.%d %s, sent "
      "%llu bytes\n",
      core, kTurns, kBatch, full, tracy::Version::Major, tracy::Version::Minor, tracy::Version::Patch,
      connected ? "connected throughout" : "LOST ITS CONNECTION",
      static_cast<unsigned long long>(discarded.load()));
  for (Case& c : cases) {
    const double least = *std::min_element(c.ns.begin(), c.ns.end());
    std::printf("%-24s least %6.2f ns   p50 %6.2f ns   p99 %6.2f ns\n", c.name, least, quantile(c.ns, 0.5),
                quantile(c.ns, 0.99));
  }
  std::printf("ours over Tracy's, turn by turn: median %.2f (target at most 1), %+.2f ns\n",
              quantile(ratio, 0.5), quantile(saved, 0.5));
  return connected ? 0 : 1;
}
