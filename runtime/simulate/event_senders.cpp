#include "runtime/simulate/event_senders.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>

#include "instrumentation/clock.h"
#include "instrumentation/error_text.h"

namespace shardscope::simulate {
namespace {

using instrumentation::Event;
static_assert(std::is_trivially_copyable_v<Event>, "events go from process to process as they are");

/// Interval at which queued data is sent while no events are passed.
constexpr std::chrono::milliseconds kPumpEvery{100};

/// More processes would compete with the simulation for the cores.
constexpr std::uint32_t kMostProcesses = 32;

/// Events computed from tensor values are omitted, since a simulation has none.
bool depends_on_values(const Event& event) noexcept {
  return has_trait(event.kind, instrumentation::EventTrait::of_values);
}

/// Header of a frame on the socket between this process and a sending one; `bytes` bytes follow.
struct Head {
  std::uint64_t bytes = 0;
  std::uint32_t number = 0;  ///< a rank, a name's id, an exit code, a severity
  std::uint8_t kind = 0;
  std::uint8_t unused[3] = {};
};
enum Kind : std::uint8_t {
  // To the process.
  kConnect,  ///< seconds, as text
  kEvents,
  kMessage,
  kName,
  kFinish,
  // From it.
  kWaiting,
  kConnected,
  kFinished,
  kFailed,  ///< error text; the process has ended
};

/// Returns false if the other process has ended.
bool write_all(int socket, const void* bytes, std::size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size != 0) {
    const ssize_t done = ::send(socket, at, size, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    size -= static_cast<std::size_t>(done);
  }
  return true;
}

bool read_all(int socket, void* bytes, std::size_t size) {
  char* at = static_cast<char*>(bytes);
  while (size != 0) {
    const ssize_t done = ::recv(socket, at, size, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    size -= static_cast<std::size_t>(done);
  }
  return true;
}

bool write_frame(int socket, std::uint8_t kind, std::uint32_t number, const void* bytes, std::size_t size) {
  Head head;
  head.bytes = size;
  head.number = number;
  head.kind = kind;
  return write_all(socket, &head, sizeof head) && write_all(socket, bytes, size);
}

bool read_frame(int socket, Head& head, std::string& bytes) {
  if (!read_all(socket, &head, sizeof head)) return false;
  bytes.resize(head.bytes);
  return read_all(socket, bytes.data(), bytes.size());
}

/// Returns true if data has arrived, false after kPumpEvery.
bool wait_for_frame(int socket) {
  pollfd ready{socket, POLLIN, 0};
  return poll(&ready, 1, static_cast<int>(kPumpEvery.count())) > 0;
}

/// Main loop of a sending process, until it has finished or the simulating process has ended.
void serve(int socket, EventSender& sender) {
  Head head;
  std::string bytes;
  for (;;) {
    while (!wait_for_frame(socket)) sender.pump();
    if (!read_frame(socket, head, bytes)) return;
    switch (head.kind) {
      case kConnect:
        sender.connect(std::stod(bytes), [&] { write_frame(socket, kWaiting, 0, nullptr, 0); });
        write_frame(socket, kConnected, 0, nullptr, 0);
        break;
      case kEvents: {
        std::vector<Event> events(bytes.size() / sizeof(Event));
        std::memcpy(static_cast<void*>(events.data()), bytes.data(), bytes.size());
        sender.take(head.number, std::move(events));
        break;
      }
      case kMessage:
        sender.message(static_cast<instrumentation::Severity>(head.number), bytes);
        break;
      case kName:
        sender.name(head.number, bytes);
        break;
      case kFinish:
        sender.finish(static_cast<int>(head.number), bytes);
        write_frame(socket, kFinished, 0, nullptr, 0);
        return;
      default:
        return;
    }
  }
}

}  // namespace

void EventSenders::check(std::uint32_t ranks) {
  const std::uint64_t most = std::uint64_t{EventSender::most_ranks()} * kMostProcesses;
  if (ranks <= most) return;
  throw std::runtime_error(
      "--ranks " + std::to_string(ranks) + ": the open files that a process may have are " +
      "enough for the connections of " + std::to_string(most) + " ranks from " +
      std::to_string(kMostProcesses) + " processes; raise the limit (ulimit -Hn) or simulate fewer ranks");
}

EventSenders::EventSenders(const Destination& destination, const instrumentation::RunTables& tables,
                           instrumentation::Detail detail, std::uint32_t most_ranks) {
  if (tables.world <= most_ranks) {
    own_.emplace(destination, tables, detail, RankRange{0, tables.world});
    return;
  }
  const std::uint32_t parts = (tables.world + most_ranks - 1) / most_ranks;
  each_ = (tables.world + parts - 1) / parts;
  for (std::uint32_t first = 0; first < tables.world; first += each_)
    start(destination, tables, detail, {first, std::min(each_, tables.world - first)});
}

void EventSenders::start(const Destination& destination, const instrumentation::RunTables& tables,
                         instrumentation::Detail detail, RankRange ranks) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error(std::string("cannot connect to a process of its own: ") + std::strerror(errno));
  const pid_t process = fork();
  if (process < 0) {
    const int failed = errno;
    close(ends[0]);
    close(ends[1]);
    throw std::runtime_error("cannot start a process that sends the events of " +
                             std::to_string(ranks.count) + " ranks: " + std::strerror(failed));
  }
  if (process == 0) {
    // The child detects the end of the simulating process by its socket: no other copy of that descriptor may
    // remain open.
    close(ends[0]);
    for (const Part& other : parts_) close(other.socket);
    int code = 0;
    try {
      EventSender sender(destination, tables, detail, ranks);
      serve(ends[1], sender);
    } catch (const std::exception& error) {
      const std::string why = instrumentation::error_text(error);
      write_frame(ends[1], kFailed, 0, why.data(), why.size());
      code = 1;
    }
    _exit(code);
  }
  close(ends[1]);
  parts_.push_back({ranks, ends[0], process});
}

EventSenders::~EventSenders() {
  for (const Part& part : parts_) {
    close(part.socket);
    while (waitpid(part.process, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void EventSenders::send(const Part& part, std::uint8_t kind, std::uint32_t number, const void* bytes,
                        std::size_t size) {
  if (!write_frame(part.socket, kind, number, bytes, size)) expect(part, kind, {});
}

void EventSenders::send_all(std::uint8_t kind, std::uint32_t number, const std::string& text) {
  for (const Part& part : parts_) send(part, kind, number, text.data(), text.size());
}

void EventSenders::expect(const Part& part, std::uint8_t kind, const std::function<void()>& waiting) {
  Head head;
  std::string text;
  while (read_frame(part.socket, head, text)) {
    if (head.kind == kind) return;
    if (head.kind == kFailed) throw std::runtime_error(text);
    if (head.kind == kWaiting && waiting) waiting();
  }
  throw std::runtime_error(
      "the process that sends the events of the ranks " + std::to_string(part.ranks.first) + " to " +
      std::to_string(part.ranks.first + part.ranks.count - 1) + " has ended without a word; was it killed?");
}

void EventSenders::connect(double seconds, const std::function<void()>& waiting) {
  if (own_) return own_->connect(seconds, waiting);
  send_all(kConnect, 0, std::to_string(seconds));
  for (const Part& part : parts_) expect(part, kConnected, waiting);
}

void EventSenders::take(std::uint32_t rank, std::vector<Event> events) {
  events.erase(std::remove_if(events.begin(), events.end(), depends_on_values), events.end());
  if (events.empty()) return;
  events_ += events.size();
  if (own_) return own_->take(rank, std::move(events));
  send(parts_[rank / each_], kEvents, rank, events.data(), events.size() * sizeof(Event));
}

void EventSenders::message(instrumentation::Severity severity, const std::string& text) {
  if (own_) return own_->message(severity, text);
  send(parts_[0], kMessage, static_cast<std::uint32_t>(severity), text.data(), text.size());
}

std::uint32_t EventSenders::name_id(const std::string& name) {
  const auto known = std::find(names_.begin(), names_.end(), name);
  if (known != names_.end()) return static_cast<std::uint32_t>(known - names_.begin());
  names_.push_back(name);
  const auto id = static_cast<std::uint32_t>(names_.size() - 1);
  if (own_) own_->name(id, name);
  send_all(kName, id, name);
  return id;
}

void EventSenders::finish(int exit_code, const std::string& text) {
  if (own_) return own_->finish(exit_code, text);
  std::string failed;
  // The error of an ended process is reported below; the others still end their ranks.
  for (const Part& part : parts_)
    write_frame(part.socket, kFinish, static_cast<std::uint32_t>(exit_code), text.data(), text.size());
  for (const Part& part : parts_) {
    try {
      expect(part, kFinished, {});
    } catch (const std::runtime_error& error) {
      if (failed.empty()) failed = error.what();
    }
  }
  if (!failed.empty() && exit_code == 0) throw std::runtime_error(failed);
}

void EventSenders::wait_until(std::int64_t at_ns) {
  for (;;) {
    const std::int64_t left_ns = at_ns - instrumentation::monotonic_now_ns();
    if (left_ns <= 0) return;
    std::this_thread::sleep_for(std::min(std::chrono::nanoseconds(left_ns),
                                         std::chrono::duration_cast<std::chrono::nanoseconds>(kPumpEvery)));
    if (own_) own_->pump();
  }
}

}  // namespace shardscope::simulate
