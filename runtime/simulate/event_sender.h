// Sends the events of all simulated ranks to a collector, each rank over a link of its own, as ranks do.
// Unlike training it waits for the collector: nothing is lost to a full queue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "instrumentation/rank_link.h"

namespace shardscope::simulate {

class EventSender {
 public:
  /// Raises the process's own limit of open files to what so many ranks' connections need. Throws
  /// std::runtime_error when it may not.
  static void allow_connections(std::uint32_t ranks);

  /// `tables`: of rank 0; the other ranks' differ in their rank and host only, and leave out the lists, which
  /// one rank sends for all. Throws std::runtime_error when the endpoint cannot be one, or the process may
  /// not open as many connections.
  EventSender(const std::string& endpoint, const std::string& key_file,
              const instrumentation::RunTables& tables, instrumentation::Detail detail);
  ~EventSender();
  EventSender(const EventSender&) = delete;
  EventSender& operator=(const EventSender&) = delete;

  /// Waits until the collector answers. Throws std::runtime_error when it does not within `seconds`.
  /// `waiting` is called once where it takes more than a moment.
  void connect(double seconds, const std::function<void()>& waiting);
  /// Events of one rank in order of time. Throws std::runtime_error when the collector has gone.
  void take(std::uint32_t rank, std::vector<instrumentation::Event> events);
  void message(instrumentation::Severity severity, const std::string& text);
  [[nodiscard]] std::uint32_t name_id(const std::string& name);
  /// Ends every rank's run. Returns when the collector has everything; throws std::runtime_error when it has
  /// not after a minute, or is gone. With an exit code that is not 0 it returns in any case.
  void finish(int exit_code, const std::string& text);
  /// Sent so far.
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

 private:
  const std::string endpoint_;
  instrumentation::LinkContext context_;
  std::vector<std::unique_ptr<instrumentation::GateKeeper>>
      gates_;  ///< never held: a simulated rank does not pause
  std::vector<std::unique_ptr<instrumentation::RankLink>> links_;  ///< by rank
  std::vector<std::int64_t> sent_until_ns_;                        ///< by rank
  std::vector<std::string> names_;
  std::uint64_t events_ = 0;
};

}  // namespace shardscope::simulate
