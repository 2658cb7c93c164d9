// Sends the events of all simulated ranks: from this process, or, where it may not have a connection for
// each, from processes of their own that each have a part of the ranks.
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
  /// Throws std::runtime_error where `ranks` ranks need more processes than it would start.
  static void check(std::uint32_t ranks);
  /// `tables`: of rank 0, see EventSender. `most_ranks`: of one process, 1 or more. Where the run has more,
  /// it starts processes; then this one may have no other threads yet. Throws std::runtime_error.
  EventSenders(const Destination& destination, const instrumentation::RunTables& tables,
               instrumentation::Detail detail, std::uint32_t most_ranks);
  ~EventSenders();  ///< processes that have not ended are ended
  EventSenders(const EventSenders&) = delete;
  EventSenders& operator=(const EventSenders&) = delete;

  /// As EventSender's. `waiting` is called once for every process.
  void connect(double seconds, const std::function<void()>& waiting);
  void take(std::uint32_t rank, std::vector<instrumentation::Event> events);
  void message(instrumentation::Severity severity, const std::string& text);
  [[nodiscard]] std::uint32_t name_id(const std::string& name);
  void finish(int exit_code, const std::string& text);

  /// Returns when the machine's monotonic clock says `at_ns`; what is on its way is sent meanwhile.
  void wait_until(std::int64_t at_ns);
  /// Taken so far.
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  /// Besides this one; 0: it sends itself.
  [[nodiscard]] std::size_t processes() const noexcept { return parts_.size(); }

 private:
  struct Part {
    RankRange ranks;
    int socket = -1;
    pid_t process = -1;
  };
  void start(const Destination& destination, const instrumentation::RunTables& tables,
             instrumentation::Detail detail, RankRange ranks);
  /// Throws the process's own words where it has ended.
  void send(const Part& part, std::uint8_t kind, std::uint32_t number, const void* bytes, std::size_t size);
  void send_all(std::uint8_t kind, std::uint32_t number, const std::string& text);
  /// What the process answers; throws its own words where that is not what was asked for.
  void expect(const Part& part, std::uint8_t kind, const std::function<void()>& waiting);

  std::uint32_t each_ = 0;  ///< ranks of a part
  std::optional<EventSender> own_;
  std::vector<Part> parts_;
  std::vector<std::string> names_;
  std::uint64_t events_ = 0;
};

}  // namespace shardscope::simulate
