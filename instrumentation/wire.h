// Messages between ranks, collector and viewers as plain structs, and their encoding (schema.fbs). Every
// received frame goes through decode(), which checks size limit, FlatBuffers verifier, version and the range
// of every field, so that later code only sees values that a correct peer can send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "instrumentation/emitter.h"
#include "instrumentation/event.h"
#include "instrumentation/gate.h"
#include "instrumentation/requests.h"

namespace shardscope::instrumentation::wire {

/// Raised with each incompatible change. 2: a node's collector packs what its ranks publish, and a receipt
/// names several ranks.
inline constexpr std::uint16_t kVersion = 2;

// Limits of what is accepted.
inline constexpr std::size_t kMaxFrameBytes = 256U << 20;  ///< tables of a large model
inline constexpr std::size_t kMaxControlBytes = 64U << 10;
inline constexpr std::size_t kMaxBatchEvents = 1U << 16;
inline constexpr std::size_t kMaxText = 16U << 10;
inline constexpr std::size_t kMaxName = 1U << 10;
inline constexpr std::size_t kMaxConfig = 16U << 20;
inline constexpr std::size_t kMaxModules = 1U << 20;
inline constexpr std::size_t kMaxParams = 1U << 20;
inline constexpr std::size_t kMaxModels = 1U << 10;
inline constexpr std::size_t kMaxParamGroups = 4096;
inline constexpr std::size_t kMaxGroups = 255;  ///< of a rank: group ids are one byte of a sequence
inline constexpr std::size_t kMaxNotRecorded = 64;
inline constexpr std::uint32_t kMaxWorld = 1U << 20;
inline constexpr std::uint32_t kMaxNames = 1U << 20;  ///< kernel names of one rank
// Limits of counters of a run; summed over the ranks of the largest world they fit in 64 bits.
inline constexpr std::uint64_t kMaxMessages = std::uint64_t{1}
                                              << 40;  ///< of one process: 34 years of a thousand a second
inline constexpr std::uint64_t kMaxDropped = std::uint64_t{1}
                                             << 43;  ///< events of one process: 101 days of 10^6 a second
/// Seconds. A lease lets a run continue when its viewer is gone.
inline constexpr double kMaxLeaseS = 86'400;

/// Of every message. Timestamps are nanoseconds of the sender's monotonic clock unless a field names another;
/// a collector converts a rank's to its own clock with estimated offsets (clock_estimator.h).
struct Header {
  std::uint32_t rank = 0;         ///< below the world
  std::uint64_t incarnation = 0;  ///< random number of the sending process: differs after a restart
  std::uint64_t sequence = 0;     ///< of this process's published messages, from 0 without gaps
  std::string run_id;
  /// In relayed messages other than batches (Relay): the rank's own process, and the number of its message
  /// after this one; 0: unknown.
  std::uint64_t source = 0, source_next = 0;
};

/// Added by a node's collector to a batch that it relays (schema.fbs).
struct Relay {
  std::uint64_t source_incarnation = 0, source_first = 0, source_last = 0;
  std::uint64_t source_dropped_total = 0, lost_total = 0;
  std::int64_t offset_ns = 0, residual_ns = 0;
};
/// Events of one rank, ascending by time.
struct Batch {
  /// Events dropped because rings were full: by the process so far, and since the previous batch.
  std::uint64_t dropped_total = 0, dropped_here = 0;
  std::int64_t begin_ns = 0,
               end_ns = 0;  ///< time it covers; where some were dropped: the first and last of these
  /// The monotonic and the wall clock read at the same time when the batch was made; error bound of the
  /// conversion from ticks.
  std::int64_t clock_ns = 0, clock_realtime_ns = 0, clock_error_ns = 0;
  std::vector<Event> events;  ///< kMaxBatchEvents at most
  std::optional<Relay> relay;
};
struct Tables {
  RunTables tables;  ///< run_id and rank are in the header
};
struct Text {
  std::int64_t at_ns = 0;
  Severity severity{};
  std::string text;
};
struct Name {
  std::uint32_t id = 0;
  std::string name;
};
/// The last message of a process that ends normally; repeated until the collector confirms it.
struct Finish {
  std::int32_t exit_code = 0;
  std::int64_t at_ns = 0;
  std::uint64_t dropped_total = 0;  ///< as in Batch
  std::string text;
};

/// A rank's first message over each new connection.
struct Hello {
  std::uint32_t world = 1;  ///< number of ranks, at most kMaxWorld
  std::int32_t pid = 0;
  std::string host, clock_id;  ///< `clock_id`: clock_identity(); ranks with equal ids share a clock
  bool relayed = false;        ///< relayed by a node's collector
};
/// First message of a node's collector; all other messages of its connection, except pongs, are its ranks'.
struct RelayHello {
  std::string host, clock_id;
  /// Ranks in ascending order.
  struct Range {
    std::uint32_t first = 0, count = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::vector<Range> present;   ///< connected to it: they need not connect to this collector
  std::vector<Range> silent;    ///< of these, ranks that send nothing over a lasting connection
  std::uint64_t hello_sum = 0;  ///< sum of their processes (app/collector/hello_sum.h); 0: unknown
};
struct Ping {
  std::uint64_t id = 0;
  std::int64_t sent_ns = 0;
  std::uint16_t look_ms = 0;  ///< longest allowed pause between drains (DrainPace); 0: the rank's own
  std::uint16_t pack_ms = 0;  ///< how long a node's collector may gather events; 0: its own pace
  std::uint64_t known = 0;  ///< of a node's ranks: RelayHello::hello_sum as the collector has it; 0: unknown
};
/// Reply to a Ping: four timestamps of one exchange, which give offset and error of the clock as in NTP.
struct Pong {
  std::uint64_t id = 0;
  std::int64_t ping_sent_ns = 0;              ///< copied from the ping: the collector's clock
  std::int64_t received_ns = 0, sent_ns = 0;  ///< the rank's clock
};
struct RankCommand {
  enum class Kind : std::uint8_t {
    prepare_pause,
    hold_at,
    resume,
    renew_lease,
    set_detail,
    resend_tables,
    finish_received,
    ask,
    keep
  };
  std::uint64_t id = 0;
  Kind kind = Kind::renew_lease;
  std::uint64_t gate = 0;  ///< hold_at; resume: new number of the gate of the hold, 0: unchanged
  bool by_step = false;    ///< hold_at: `gate` counts gates between steps
  double lease_s = 0;      ///< prepare_pause, hold_at, resume, renew_lease: from now
  StopRule rule;           ///< resume
  Detail detail{};         ///< set_detail
  Request request{};       ///< ask: the answer is a Text
  /// keep, to a node's collector, not to a rank: store the recording around this time of the node's clock (0:
  /// now), for the reason in `text` (app/collector/moment_request.h).
  std::int64_t at_ns = 0;
  std::string text = {};
  std::int64_t until_ns = 0;                    ///< keep: end of the interval, such as a step; 0: an instant
  std::uint32_t step = kNoId, of_rank = kNoId;  ///< keep: step and rank of the moment
};
/// The collector has received every message of process `source` before number `next`.
struct Received {
  std::uint64_t source = 0, next = 0;
  struct OfRank {
    std::uint32_t rank = 0;
    std::uint64_t source = 0, next = 0;
  };
  std::vector<OfRank> others;  ///< to a node's collector: the same for others of its ranks
  static constexpr std::size_t kMostOthers = 2048;  ///< limit of a control message
};
/// The collector accepts nothing from this process.
struct Refusal {
  std::string why;
};
/// A rank's answer to prepare_pause. hold_at names the gate after the largest of all ranks.
struct Prepared {
  std::uint64_t command = 0, gate = 0;  ///< `gate`: gates that may have been passed
  std::uint64_t steps = 0;              ///< gates between steps that may have been passed
};
struct Position {
  GateKeeper::Position position;
  std::uint64_t passed = 0, lease_expirations = 0;
  std::int8_t detail = -1;  ///< -1: emission is off
};

/// A viewer's request for new items. Cursors count items of the collector's log `log` (a random id; if it
/// differs, from the beginning).
struct ViewPoll {
  std::uint64_t log = 0, static_cursor = 0, cursor = 0, rank_revision = 0;
  bool want_items = true;
  std::uint64_t receipt = 0;  ///< of the last reply received
};
struct ViewCommand {
  enum class Kind : std::uint8_t { pause, resume, set_detail, ask };
  std::uint64_t id = 0;
  Kind kind = Kind::pause;
  StopRule rule;
  Detail detail{};
  Request request{};
};
/// Item of the log. `data`: an encoded chunk (app/store/chunk.h) or tables, as received.
struct ViewItem {
  enum class Kind : std::uint8_t { chunk, message, name, tables };
  Kind kind = Kind::chunk;
  std::uint32_t rank = 0, id = 0;
  std::int64_t at_ns = 0;
  Severity severity{};
  std::string text;
  std::vector<std::uint8_t> data;
};
struct RankState {
  std::uint32_t rank = 0;
  bool connected = false, finished = false;
  std::int32_t exit_code = 0, pid = 0;
  std::string host, exit_message;
  std::uint64_t events = 0, dropped = 0, lost_messages = 0;
  std::int64_t clock_offset_ns = 0, clock_residual_ns = 0, last_ns = 0;
  Position gate;
};
struct ViewReply {
  std::uint64_t log = 0, static_cursor = 0, cursor = 0, end_cursor = 0, rank_revision = 0;
  bool finished = false;
  std::int32_t exit_code = 0;
  bool pausing = false, paused = false;
  std::uint64_t gate = 0;
  double lease_left_s = 0;  ///< until holding ranks continue by themselves; 0: none holds
  std::string note;
  std::vector<RankState> ranks;
  std::vector<ViewItem> items;
  std::uint64_t receipt = 0;  ///< random: a poll with it comes from a viewer that has received this reply
  std::uint64_t begin_cursor = 0;  ///< first item that the log still has
};

using Body = std::variant<Batch, Tables, Text, Name, Finish, Hello, Ping, Pong, RankCommand, Prepared,
                          Position, ViewPoll, ViewCommand, ViewReply, RelayHello, Received, Refusal>;
struct Message {
  Header header;
  Body body;
};

/// An encoded message; owns its bytes.
class Frame {
 public:
  Frame();
  ~Frame();
  Frame(Frame&&) noexcept;
  Frame& operator=(Frame&&) noexcept;
  [[nodiscard]] const std::uint8_t* data() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;

 private:
  friend Frame encode(const Message&);
  struct Buffer;
  std::unique_ptr<Buffer> buffer_;
};

[[nodiscard]] Frame encode(const Message& message);

/// Sender of the frame: only messages that this peer may send are accepted, with a matching size limit.
enum class From : std::uint8_t { rank_publish, rank_control, collector_control, viewer, collector_view };

enum class Reject : std::uint8_t { none, size, garbage, version, body, value };
[[nodiscard]] const char* name_of(Reject reject) noexcept;

struct Decoded {
  std::optional<Message> message;
  Reject reject = Reject::none;
  std::string why;  ///< reason, when rejected
};
/// Never throws on any input (except out of memory). A batch's events are decoded into `storage`, whose
/// contents are discarded: pass the same vector again to reuse its memory.
[[nodiscard]] Decoded decode(const void* data, std::size_t bytes, From from, std::vector<Event> storage = {});

}  // namespace shardscope::instrumentation::wire
