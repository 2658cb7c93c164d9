// Private state of a Collector, shared by the files that implement it and by no others:
//   collector.cpp         start, event loop, end
//   rank_intake.cpp       messages published by ranks: order, tables, events cut into chunks
//   rank_control.cpp      control messages of ranks: hello, clocks, commands, ends
//   rank_rounds.cpp       timers of each rank: chunks, rows, confirmations, pings, silences
//   node_control.cpp      hellos of nodes' collectors, and the connection to the one above
//   run_choice.cpp        selection of the run that is received; refusal of ranks of other runs
//   collector_views.cpp   viewers: their requests, and the data of replies besides the log
// They receive messages, call the parts below in order, and report. Only a part itself changes its state:
//   rank_table.h, listed_ranks.h           ranks and their due times; ranks that nodes list
//   rank_liveness.h                        silent and lost ranks, and messages about them
//   rank_sender.h                          commands, confirmations and requests to ranks
//   downstream_links.h, upstream_relay.h   messages to ranks and nodes; to and from the collector above
//   run_record.h, run_messages.h           events queued for the recorder; the collector's own messages
//   collective_clocks.h                    clocks, narrowed by collectives
//   gate_comparison.h                      whether ranks pass the same gates
//   pause_coordinator.h                    pauses, and commands to ranks
//   moment_requests.h                      requests to keep the interval around a moment
//   status_board.h, problems.h             counters of the status, and reports of problems
//   published_control_state.h              state that viewers receive besides the log
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "app/collector/collective_clocks.h"
#include "app/collector/collector.h"
#include "app/collector/collector_sockets.h"
#include "app/collector/downstream_links.h"
#include "app/collector/gate_comparison.h"
#include "app/collector/listed_ranks.h"
#include "app/collector/moment_requests.h"
#include "app/collector/pacing.h"
#include "app/collector/pause_coordinator.h"
#include "app/collector/problems.h"
#include "app/collector/published_control_state.h"
#include "app/collector/rank_liveness.h"
#include "app/collector/rank_sender.h"
#include "app/collector/rank_session.h"
#include "app/collector/rank_table.h"
#include "app/collector/run_identity.h"
#include "app/collector/run_messages.h"
#include "app/collector/run_record.h"
#include "app/collector/status_board.h"
#include "app/collector/upstream_relay.h"
#include "app/collector/view_server.h"
#include "instrumentation/local_keys.h"

namespace shardscope::collector {

constexpr int kMessagesPerTurn = 256;  ///< received from one socket before the others are served

struct Collector::State {
  using Severity = instrumentation::Severity;

  explicit State(CollectorOptions o);

  CollectorOptions options;
  std::unique_ptr<instrumentation::LocalKeys>
      local_keys;  ///< null: the options give keys, or it does not listen on the loopback interface
  CollectorSockets sockets;
  std::atomic<bool> stopping{false};
  std::thread thread;

  // Used by the collector's thread. Each member alone changes its own state.
  RunIdentity identity;
  wire::Header header;  ///< of messages that the collector sends; its run id is `identity`'s
  Pacing pacing;
  RankTable ranks{pacing, identity};
  DownstreamLinks down;
  ListedRanks listed{ranks, down.nodes()};
  PauseCoordinator pauses;
  StatusBoard board;  ///< for every thread
  UpstreamRelay relay;
  RunRecord record;
  RunMessages messages;
  RankLiveness liveness{ranks, listed, pauses, record, relay, messages};
  RankSender sender{ranks, down, pauses, liveness};
  std::optional<ViewServer> viewers;
  PublishedControlState shown;
  Problems problems;
  MomentRequests moments;
  CollectiveClocks collective_clocks;
  GateComparison gates;
  std::string clock_id, host;  ///< of this machine
  std::string requester;       ///< sender of the viewer's message being handled
  /// The recorder is to wake this thread: a viewer waits, or ranks without room. Read by the recorder.
  std::atomic<bool> wakeup_requested{true};

  // The event loop: turn() once per round.
  void admit();  ///< listens, and sets up who may connect
  void run();
  void turn();
  void take_exits();
  void take_detail();
  void find_pace(double now);
  void detect_stall(double now);
  void publish_control(double now);
  void publish_rows(double now);  ///< every row that has changed
  void commit_recording(double now);
  void finish_recording();
  /// Whether a message belongs to this collector's run. Reports a message of another run.
  [[nodiscard]] bool is_of_run(const wire::Header& from, RunIdentity::Proof proof);
  void clear_hellos(const std::string& run_id);
  void forget_unpublished();

  void start_upstream();
  void forward_upstream();
  void publish_end(double now);
  void leave(double now);  ///< begins the end: queues all pending events for the recorder

  // Messages published by ranks.
  void receive_published();
  void on_frame(std::span<const std::uint8_t> frame);
  void on_published(wire::Message message, std::size_t bytes);
  void on_tables(RankSession& rank, const wire::Tables& tables, std::size_t bytes);
  void learn_clocks(const RankSession& rank, const wire::Batch& batch);
  void compare_gates(std::uint32_t rank, const wire::Batch& batch);
  void forget_end(RankSession& rank);  ///< of the process before
  void on_finish(RankSession& rank, const wire::Finish& finish);
  void report_events_lost_with_node(RankSession& rank);
  /// Whether receiving is stopped: unrecorded events exceed `intake_bytes`, or a queue to the collector above
  /// is full of events that must not be shed.
  [[nodiscard]] bool intake_full() const noexcept { return record.full() || relay.full(); }
  /// Sheds pending events. False: unrecorded events still exceed `intake_bytes`.
  bool shed();

  // Control.
  void receive_control();
  void on_control(const std::string& route, const wire::Message& message, std::int64_t received_ns);
  void on_hello(const std::string& route, const wire::Header& from, const wire::Hello& hello);

  // Timers of each rank, see [Note: what a rank waits for].
  void service_ranks(double now);
  void run_due_timers(double now);
  void flush_if_due(RankSession& rank, double now);
  void confirm_and_ping(RankSession& rank, double now);
  void publish_row(RankSession& rank, double now, bool at_once);

  void on_node(const std::string& route, const wire::Header& from, const wire::RelayHello& hello);
  void service_nodes(double now);

  // Viewers.
  void start_views();
  void record_command(const wire::ViewCommand& command, const std::string& by);
  void receive_views();
  void fill(wire::ViewReply& reply, std::uint64_t known) const;
};

}  // namespace shardscope::collector
