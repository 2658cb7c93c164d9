#include "app/collector/connections.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace shardscope::collector {

namespace {

constexpr std::chrono::milliseconds kLookEvery{25};
/// Interval while no peer is connected; attend() ends it. Bounds the delay where the collector's thread
/// cannot call that.
constexpr std::chrono::milliseconds kAloneEvery{1000};
/// Intervals without a check while memory does not grow; bounds how stale the counts of a descriptor get.
constexpr int kIdleLooks = 200;
constexpr std::size_t kGrowth = 8U << 20;
/// Bytes of a frame's header and, with keys, of encryption; rather more than the true number than fewer.
constexpr std::size_t kFrameOverhead = 42;

/// Cookie of a socket; 0: the descriptor is not a socket, or is closed.
std::uint64_t cookie_of(int descriptor) noexcept {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

int tcp_port_of(const std::string& endpoint) {
  if (endpoint.rfind("tcp://", 0) != 0) return -1;
  int port = -1;
  const std::size_t colon = endpoint.rfind(':');
  std::from_chars(endpoint.data() + colon + 1, endpoint.data() + endpoint.size(), port);
  return port;
}

std::string file_of(const std::string& endpoint) {
  constexpr std::string_view kIpc = "ipc://";
  return endpoint.starts_with(kIpc) ? endpoint.substr(kIpc.size()) : std::string();
}

/// Bytes received by the kernel and not read.
std::size_t unread(int descriptor) noexcept {
  int bytes = 0;
  return ioctl(descriptor, SIOCINQ, &bytes) == 0 ? static_cast<std::size_t>(std::max(bytes, 0)) : 0;
}

/// False: not a connection, or a listening socket.
bool local_address(int descriptor, sockaddr_storage& address) noexcept {
  socklen_t size = sizeof address;
  int listening = 0;
  socklen_t flag = sizeof listening;
  return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &flag) == 0 && listening == 0 &&
         getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
}

/// Bytes read from a connection since it was made.
std::uint64_t bytes_read(int descriptor) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  // Unread bytes first: more may arrive between the two calls.
  const std::uint64_t kept = unread(descriptor);
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_bytes_received > kept ? info.tcpi_bytes_received - kept : 0;
}

}  // namespace

Connection connection_of(zmq::message_t& message) noexcept {
  const int descriptor = zmq_msg_get(message.handle(), ZMQ_SRCFD);
  if (descriptor < 0) return {};
  return {descriptor, cookie_of(descriptor)};
}

bool cut(const Connection& connection) noexcept {
  if (connection.descriptor < 0 || connection.cookie == 0) return false;
  // A duplicate: this descriptor cannot become another connection between the check and shutdown().
  const int own = fcntl(connection.descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return false;
  const bool same = cookie_of(own) == connection.cookie;
  if (same) {
    // The kernel discards its unsent bytes, too.
    const linger none{1, 0};
    (void)setsockopt(own, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    (void)shutdown(own, SHUT_RDWR);
  }
  close(own);
  return same;
}

ConnectionWatch::ConnectionWatch(const instrumentation::Endpoints& endpoints, Limits limits)
    : ports_{tcp_port_of(endpoints.publish), tcp_port_of(endpoints.view), tcp_port_of(endpoints.control)},
      files_{file_of(endpoints.publish), file_of(endpoints.view), file_of(endpoints.control)},
      limits_(limits),
      taken_(std::make_unique<std::atomic<std::uint64_t>[]>(kDescriptors)),
      taken_before_(kDescriptors) {
  thread_ = std::thread([this] { run(); });
}

ConnectionWatch::~ConnectionWatch() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void ConnectionWatch::attend() {
  {
    const std::lock_guard lock(mutex_);
    attend_ = true;
  }
  wake_.notify_one();
}

bool ConnectionWatch::any_connected() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& entry) { return entry.second.port >= 0; });
}

void ConnectionWatch::delivered(zmq::message_t& frame) noexcept {
  const int descriptor = zmq_msg_get(frame.handle(), ZMQ_SRCFD);
  if (descriptor < 0 || static_cast<std::size_t>(descriptor) >= kDescriptors) return;
  taken_[static_cast<std::size_t>(descriptor)].fetch_add(frame.size() + kFrameOverhead,
                                                         std::memory_order_relaxed);
}

void ConnectionWatch::run() {
  const int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::size_t resident_before = 0;
  int idle = 0;
  bool alone = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, alone ? kAloneEvery : kLookEvery, [&] { return stop_ || (alone && attend_); });
    if (stop_) break;
    if (std::exchange(attend_, false) && std::exchange(alone, false)) idle = 0;
    lock.unlock();
    std::array<char, 64> text{};
    std::size_t resident = resident_before + kGrowth;  // if it cannot be read: check
    if (const ssize_t got = pread(statm, text.data(), text.size(), 0); got > 0) {
      const std::string_view line(text.data(), static_cast<std::size_t>(got));
      const std::size_t second = line.find(' ') + 1;
      std::size_t pages = 0;
      std::from_chars(line.data() + second, line.data() + line.size(), pages);
      resident = pages * page;
    }
    // Only growth causes a check: bytes stored in memory that the process had already are not noticed.
    if (resident >= resident_before + kGrowth || ++idle >= kIdleLooks) {
      look(resident_before == 0 ? 0 : resident - std::min(resident, resident_before));
      alone = !any_connected();
      resident_before = resident;
      idle = 0;
    } else if (resident < resident_before) {
      resident_before = resident;
    }
    lock.lock();
  }
  lock.unlock();
  if (statm >= 0) close(statm);
}

void ConnectionWatch::look(std::size_t growth) {
  for (auto& [cookie, peer] : peers_) peer.seen = false;
  waiting_.clear();
  quiet_.clear();
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    int descriptor = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (error != std::errc{} || static_cast<std::size_t>(descriptor) >= kDescriptors) continue;
    look_at(descriptor);
  }
  closedir(folder);
  estimate(growth);
  std::erase_if(peers_, [](const auto& entry) { return !entry.second.seen; });
  cut_connections_over_limits();
}

int ConnectionWatch::port_of(int descriptor) const noexcept {
  sockaddr_storage address{};
  if (!local_address(descriptor, address)) return -1;
  const auto index = [](const auto& list, const auto& wanted) {
    const auto known = std::find(list.begin(), list.end(), wanted);
    return known == list.end() ? -1 : static_cast<int>(known - list.begin());
  };
  switch (address.ss_family) {
    case AF_INET:
      return index(ports_, ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port));
    case AF_INET6:
      return index(ports_, ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port));
    case AF_UNIX: {
      const std::string_view path = reinterpret_cast<const sockaddr_un*>(&address)->sun_path;
      return path.empty() ? -1 : index(files_, path);
    }
    default:
      return -1;
  }
}

/// [Note: bytes over ipc]
void ConnectionWatch::estimate(std::size_t growth) {
  // A peer that sends no faster than libzmq reads has no bytes waiting at a check.
  const std::vector<Peer*>& suspects = waiting_.empty() ? quiet_ : waiting_;
  for (Peer* peer : suspects) peer->held += growth / suspects.size();
}

void ConnectionWatch::look_at(int descriptor) {
  const std::uint64_t cookie = cookie_of(descriptor);
  if (cookie == 0) return;
  const auto [at, added] = peers_.try_emplace(cookie);
  Peer& peer = at->second;
  peer.seen = true;
  const auto index = static_cast<std::size_t>(descriptor);
  if (added) {
    peer.descriptor = descriptor;
    peer.port = port_of(descriptor);
    peer.estimated = peer.port >= 0 && !files_[0].empty();
    // Bytes delivered under this descriptor before the last check belonged to another connection.
    peer.delivered = taken_before_[index];
  }
  if (peer.port < 0) return;
  const std::uint64_t taken = taken_[index].load(std::memory_order_relaxed);
  peer.spoke = peer.spoke || taken != peer.delivered;
  if (peer.estimated) {
    if (taken != peer.delivered) peer.held = 0;
    const bool waited = std::exchange(peer.waits, unread(descriptor) != 0);
    if (taken == peer.delivered) (peer.waits || waited || !peer.spoke ? waiting_ : quiet_).push_back(&peer);
    peer.delivered = taken_before_[index] = taken;
    return;
  }
  const std::uint64_t read = bytes_read(descriptor);
  const std::uint64_t came = read - std::min(read, peer.received), went = taken - peer.delivered;
  if (came <= went) {
    peer.received = read;
    peer.delivered = taken;
  }
  peer.held = came > went ? static_cast<std::size_t>(came - went) : 0;
  taken_before_[index] = taken;
}

void ConnectionWatch::cut_off(std::map<std::uint64_t, Peer>::iterator peer) {
  if (cut({peer->second.descriptor, peer->first})) cut_off_.fetch_add(1, std::memory_order_relaxed);
  peer->second.port = -1;
}

void ConnectionWatch::cut_connections_over_limits() {
  using Entry = std::map<std::uint64_t, Peer>::iterator;
  std::vector<Entry> holding;
  std::size_t sum = 0, views = 0;
  for (auto at = peers_.begin(); at != peers_.end(); ++at) {
    Peer& peer = at->second;
    if (peer.port < 0) continue;
    const bool is_view = peer.port == 1;
    const std::size_t each = limits_.each[static_cast<std::size_t>(peer.port)];
    if (peer.held > (peer.estimated ? std::max(each, limits_.least_estimated) : each) ||
        (is_view && views >= limits_.views && !peer.spoke)) {
      cut_off(at);
      continue;
    }
    views += is_view ? 1 : 0;
    sum += peer.held;
    if (peer.held != 0) holding.push_back(at);
  }
  const std::size_t limit = limits_.in_all + ranks_.load(std::memory_order_relaxed) * limits_.rank;
  if (sum <= limit) return;
  // Peers that have never sent a whole message first, then those with most bytes. A rank that is cut off
  // reconnects and sends again.
  std::sort(holding.begin(), holding.end(), [](const Entry& a, const Entry& b) {
    if (a->second.spoke != b->second.spoke) return !a->second.spoke;
    return a->second.held > b->second.held;
  });
  for (const Entry& at : holding) {
    // Which of the estimated peers without a message caused it cannot be known: cuts all of them.
    if (sum <= limit && (at->second.spoke || !at->second.estimated)) break;
    sum -= std::min(sum, at->second.held);
    cut_off(at);
  }
}

}  // namespace shardscope::collector
