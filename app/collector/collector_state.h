// The inside of a Collector, shared by the files that implement it and by no other:
//   collector.cpp         start, event loop, end
//   rank_intake.cpp       what ranks publish: order, tables, events cut into chunks
//   rank_control.cpp      control messages of ranks: hello, clocks, commands, liveness
//   node_control.cpp      the same between collectors of a chain
//   collector_views.cpp   viewers: their requests, and what replies have besides the log
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "app/collector/collective_clocks.h"
#include "app/collector/collector.h"
#include "app/collector/collector_pace.h"
#include "app/collector/collector_sockets.h"
#include "app/collector/gate_comparison.h"
#include "app/collector/pause_coordinator.h"
#include "app/collector/rank_session.h"
#include "app/collector/recorder.h"
#include "app/collector/run_sink.h"
#include "app/collector/upstream.h"
#include "app/collector/view_server.h"
#include "instrumentation/clock.h"
#include "instrumentation/local_keys.h"

namespace shardscope::collector {

constexpr int kMessagesPerTurn = 256;  ///< of one socket, before the others have their turn

struct Collector::State {
  using Severity = instrumentation::Severity;

  explicit State(CollectorOptions o);

  CollectorOptions options;
  std::unique_ptr<instrumentation::LocalKeys>
      local_keys;  ///< none: with keys of the options, or not on the loopback
  CollectorSockets sockets;
  std::atomic<bool> stopping{false};
  std::thread thread;

  // The collector's thread.
  // [Note: which run it is]
  // Anyone can send a hello: a stray one must not keep the real ranks out. So until something
  // has been published a run is only supposed, and it is the one that publishes its tables or events first,
  // unless the user has said which it is. In the same way the tables say how many ranks there are, and a
  // process has a rank's place while it publishes.
  wire::Header header;       ///< of what the collector says; run id as it is supposed or known
  bool run_known = false;    ///< ... by the user, or by what was published
  bool world_known = false;  ///< `world` is of tables
  std::map<std::string, double> refused_runs;  ///< control identity -> when it was last sent the reason
  std::map<std::uint32_t, RankSession> ranks;
  /// A node's collector. The times of its ranks are on its clock.
  struct Node {
    std::string host, route;
    ClockEstimator clock;
    double last_message_s = 0, next_ping_s = 0;
    std::uint32_t pings = 0;
    bool gone = false;
  };
  std::map<std::uint64_t, Node> nodes;               ///< by incarnation
  std::map<std::string, std::uint64_t> node_routes;  ///< control identity -> node
  std::uint32_t local_world = 1;                     ///< as the ranks' tables say
  std::optional<Upstream> upstream;
  double all_sent_s = 0;  ///< since then every rank has ended and everything has been sent upstream
  /// The last pause prepared for each rank: own number of the command -> the upper collector's.
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> prepared_for_upstream;
  std::uint32_t world = 0;
  PauseCoordinator pauses;
  RunSink sink;  ///< its read() is for every thread; the rest belongs to `recorder`
  std::optional<Recorder> recorder;
  std::size_t pending_bytes = 0;  ///< of all ranks' events that the recorder has not got yet
  std::vector<instrumentation::Event> batch_storage;  ///< a batch is decoded into, time after time
  bool shedding = false;                              ///< has been said
  std::optional<ViewServer> viewers;
  std::string clock_id, host;  ///< of this machine
  std::uint64_t revision = 1;
  bool end_published = false;      ///< viewers know, or are about to, that nothing more comes
  ControlState published_control;  ///< control state of the last revision
  struct Complaint {
    double said_s = 0;         ///< when last
    std::uint64_t unsaid = 0;  ///< how many since
    std::string text;          ///< of the last of them
  };
  std::map<std::string, Complaint> complaints;  ///< by kind of rejection
  double next_commit_s = 0, next_liveness_s = 0, next_round_s = 0;
  double turned_s = 0;            ///< end of the last turn
  Watch watched = Watch::active;  ///< as of the last round over the ranks
  CollectorPace pace = pace_of(Watch::active, 0);
  /// Some thing recorded is waited for: by a viewer, or by ranks that had no room. Read by the recorder.
  std::atomic<bool> news_wanted{true};
  std::uint64_t ping_id = 0;
  CollectiveClockSamples clock_samples;
  bool clocks_differ = false;  ///< some rank's is not this machine's
  GateComparison gates;
  std::vector<std::string> module_paths;  ///< for texts about gates; few models have more than are kept

  // Shared.
  mutable std::mutex status_mutex;
  CollectorStatus status;
  std::vector<std::pair<std::uint32_t, std::int32_t>> exits;  ///< noted and not taken yet
  std::atomic<bool> all_gone{false};                          ///< note_over() was called

  RankSession& session(std::uint32_t rank) { return ranks.try_emplace(rank, rank).first->second; }

  // The event loop: turn() once per round.
  void admit();  ///< listens, and prints how to connect
  void run();
  void turn();
  void take_exits();
  void find_pace(double now);
  void notice_standstill(double now);
  void publish_control(double now);
  void publish_rows(double now, bool all);
  void commit_recording(double now);
  void finish_recording();
  void say(std::uint32_t rank, std::int64_t at_ns, Severity severity, const std::string& text);
  void count_refused(const std::vector<AccessGuard::Refusal>& refusals);
  void complain(const std::string& kind, const std::string& text);
  /// How often it happened since, of what was not said at once.
  void say_unsaid(double now, bool all);
  void reject(const std::string& kind, const std::string& who, const std::string& why);
  enum class Proof : std::uint8_t { greeting, published };
  [[nodiscard]] bool run_id_fits(const wire::Header& from, Proof proof);
  void forget_greetings();
  void forget_unpublished();
  void refuse(const std::string& route, const wire::Header& to, const std::string& why);
  [[nodiscard]] std::string other_run(const wire::Header& from) const;

  void start_upstream();
  void pass_upstream();
  void publish_end(double now);
  void leave(double now);  ///< begins the end: everything pending goes to the recorder

  // What ranks publish.
  void receive_published();
  void on_published(wire::Message message, std::size_t bytes);
  void on_tables(RankSession& rank, const wire::Tables& tables, std::size_t bytes);
  void compare_gates(std::uint32_t rank, const wire::Batch& batch);
  [[nodiscard]] std::string gate_words(instrumentation::GateKind kind, std::uint32_t id) const;
  void on_finish(RankSession& rank, const wire::Finish& finish);
  void flush(RankSession& rank);
  /// Carries out `change`, which may change how much of a rank is pending.
  template <typename Change>
  void pending(RankSession& rank, Change change) {
    const std::size_t before = rank.pending_bytes();
    change();
    pending_bytes += rank.pending_bytes() - before;
  }
  void flush_due(double now);
  [[nodiscard]] std::size_t intake_bytes() const noexcept;  ///< arrived and not recorded
  /// Receiving is stopped: the recorder is behind by `intake_bytes`, or the queue to the collector above is
  /// full of what must not be shed.
  [[nodiscard]] bool intake_full() const noexcept {
    return intake_bytes() > options.intake_bytes || (upstream && upstream->full());
  }
  /// Keeps them within the bound. False: there is nothing left that may be shed.
  bool make_room();
  [[nodiscard]] bool recorder_has_room() const noexcept {
    return recorder->queued_bytes() < options.intake_bytes / 4;
  }

  // Control.
  void receive_control();
  void on_control(const std::string& route, const wire::Message& message, std::int64_t received_ns);
  void on_hello(const std::string& route, const wire::Header& from, const wire::Hello& hello);
  void send_commands();
  void send_to_rank(RankSession& rank, wire::Body body);
  void ask_for_tables(RankSession& rank);
  void thank(RankSession& rank);
  void confirm(RankSession& rank);
  void look_after_ranks(double now);
  void learn_clocks(const RankSession& rank, const wire::Batch& batch);
  void lost(RankSession& rank, const std::string& why);

  void pass_command(std::uint32_t rank, wire::RankCommand command);
  void pass_control(const wire::Message& message);
  void on_node(const std::string& route, const wire::Header& from, const wire::RelayHello& hello);
  [[nodiscard]] Node* node_at(const std::string& route);
  void look_after_nodes(double now);
  [[nodiscard]] std::int64_t clock_now() const noexcept {
    return options.clock.at(instrumentation::monotonic_now_ns());
  }

  // Viewers.
  void start_views();
  void say_command(const wire::ViewCommand& command);
  std::string sender;  ///< of the viewer's message that is being looked at
  int detail = -1;     ///< last reported by a rank or set by a viewer
  void receive_views();
  void fill(wire::ViewReply& reply, std::uint64_t known) const;
};

}  // namespace shardscope::collector
