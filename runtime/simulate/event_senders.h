// Sends the events of all simulated ranks: from this process or, if it cannot have enough connections, from
// child processes, each for a part of the ranks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "runtime/simulate/event_sender.h"

namespace shardscope::simulate {

class EventSenders {
 public:
  /// Throws std::runtime_error if `ranks` need more than the maximum number of processes.
  static void check(std::uint32_t ranks);
  /// `tables`: of rank 0, see EventSender. `most_ranks`: maximum per process, at least 1. If the run has
  /// more, it forks processes, so the caller must have no other threads yet. Throws std::runtime_error.
  EventSenders(const Destination& destination, const instrumentation::RunTables& tables,
               instrumentation::Detail detail, std::uint32_t most_ranks);
  ~EventSenders();  ///< kills processes still running
  EventSenders(const EventSenders&) = delete;
  EventSenders& operator=(const EventSenders&) = delete;

  /// As EventSender's. `waiting` is called once for every process.
  void connect(double seconds, const std::function<void()>& waiting);
  void take(std::uint32_t rank, std::vector<instrumentation::Event> events);
  void message(instrumentation::Severity severity, const std::string& text);
  [[nodiscard]] std::uint32_t name_id(const std::string& name);
  void finish(int exit_code, const std::string& text);

  /// Returns when the monotonic clock has reached `at_ns`; sends queued data meanwhile.
  void wait_until(std::int64_t at_ns);
  /// Number of events passed to take() so far.
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  /// Number of child processes; 0: this process sends itself.
  [[nodiscard]] std::size_t processes() const noexcept { return parts_.size(); }

 private:
  struct Part {
    RankRange ranks;
    int socket = -1;
    pid_t process = -1;
  };
  void start(const Destination& destination, const instrumentation::RunTables& tables,
             instrumentation::Detail detail, RankRange ranks);
  /// Throws the process's own error if it has ended.
  void send(const Part& part, std::uint8_t kind, std::uint32_t number, const void* bytes, std::size_t size);
  void send_all(std::uint8_t kind, std::uint32_t number, const std::string& text);
  /// Waits for a response of this kind; throws the process's own error on another one.
  void expect(const Part& part, std::uint8_t kind, const std::function<void()>& waiting);

  std::uint32_t each_ = 0;  ///< ranks per part
  std::optional<EventSender> own_;
  std::vector<Part> parts_;
  std::vector<std::string> names_;
  std::uint64_t events_ = 0;
};

}  // namespace shardscope::simulate
