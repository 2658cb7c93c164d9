#include "app/gui/model/copy_recording.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "app/collector/viewer.h"
#include "app/gui/model/format.h"
#include "app/gui/model/rank_groups.h"
#include "app/store/chunk.h"
#include "app/store/recording.h"
#include "app/store/retention.h"
#include "app/store/store.h"
#include "instrumentation/sockets.h"

namespace shardscope::gui {
namespace {

using Link = collector::Viewer::Link;
using Traffic = collector::ViewTraffic;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{20};    ///< between two polls without data
constexpr std::chrono::milliseconds kReport{500};  ///< between two commits, each followed by reading the size
constexpr std::chrono::seconds kNoAnswer{10};      ///< the copy fails if the collector does not answer
constexpr std::chrono::seconds kLost{10};          ///< a lost connection may return within this time
constexpr std::chrono::seconds kLastTaken{5};      ///< for received data when the copy ends

std::uint64_t bytes_at(const std::string& path) {
  std::error_code none;
  const std::uintmax_t found = std::filesystem::file_size(path, none);
  return none ? 0 : found;
}

std::string pieces(std::uint64_t number) {
  return std::to_string(number) + (number == 1 ? " piece" : " pieces");
}

}  // namespace

/// Writes the file, and keeps the totals reported at its end.
class CopyRecording::Copier : public collector::ViewObserver {
 public:
  explicit Copier(const Order& order) : order_(order), viewer_(order.endpoint, order.key_file, this) {}

  void chunk(const store::Chunk& chunk, std::span<const std::byte> encoded) override {
    if (finished_) return;
    copied_.insert(chunk.rank);
    writer().append(chunk, encoded);
  }
  void tables(const instrumentation::RunTables& tables) override {
    if (!finished_) writer().tables(tables.rank, tables);
  }
  void rank(const store::RankRow& row) override {
    if (finished_) return;
    rows_[row.rank] = {row.events, row.last_ns};
    writer().rank(row);
  }
  void message(const store::Message& message) override {
    if (!finished_) writer().message(message);
  }
  void name(std::uint32_t rank, std::uint32_t id, const std::string& name) override {
    if (!finished_) writer().name(rank, id, name);
  }
  void another_run(const Traffic& before) override {
    finish("another collector answers at " + order_.endpoint, before);
  }

  /// Processes received messages. Returns whether there were any.
  bool take() {
    const bool any = viewer_.poll(store_, kPause);
    if (finished_) return any;
    const Link link = viewer_.link();
    if (link != Link::connecting) writer();
    check();
    if (link == Link::ended) {
      end("the run or its collector ended");
    } else if (stays_lost(link)) {
      end("the connection was lost");
    } else if (!writer_ && Clock::now() - began_ > kNoAnswer) {
      const std::string note = viewer_.control().note;
      throw std::runtime_error(order_.target + ": " + order_.endpoint + " does not answer" +
                               (note.empty() ? "" : ": " + note));
    }
    return any;
  }
  /// Ends the file with the received data, as far as it can be processed within kLastTaken.
  void end(const std::string& why) {
    const Clock::time_point limit = Clock::now() + kLastTaken;
    for (bool more = true; more && !finished_ && Clock::now() < limit;) {
      more = viewer_.traffic().waiting_bytes > 0;  // the last poll processes the rows of the ranks
      viewer_.poll(store_, kPause);
      check();
    }
    if (viewer_.link() != Link::connecting) writer();
    finish(why, viewer_.traffic());
  }
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  /// Commits the recorded events, so that they survive a crash.
  void report(State& state) {
    if (!finished_) {
      const Link link = viewer_.link();
      look(viewer_.traffic());
      figures_.catching_up |= link == Link::connecting || link == Link::catching_up;
    }
    if (writer_) {
      writer_->commit();
      state.bytes = bytes_at(order_.target) + bytes_at(order_.target + "-wal");
    }
    state.events = figures_.events;
    state.since_s = figures_.since_s;
    state.catching_up = figures_.catching_up;
    state.missing_pieces = figures_.missing_pieces;
    state.damaged_pieces = figures_.damaged_pieces;
    state.why_ended = why_;
  }

 private:
  /// Created at the first answer: a copy without an answer keeps an existing file.
  store::RecordingWriter& writer() {
    if (!writer_) {
      // The collector may be on another machine, with another wall clock.
      writer_.emplace(order_.target, store::Retention{}, store::RecordingWriter::WallClock::unknown);
    }
    return *writer_;
  }
  void check() const {
    if (!writer_) return;
    if (const std::string error = writer_->error(); !error.empty()) throw std::runtime_error(error);
  }
  /// While this thread waits for the disk it sends no requests and the collector no replies: the link then
  /// looks lost until the next reply.
  [[nodiscard]] bool stays_lost(Link link) {
    const Traffic traffic = viewer_.traffic();
    const Clock::time_point now = Clock::now();
    if (link != Link::lost || traffic.waiting_bytes > 0 || traffic.bytes != received_) lost_from_ = now;
    received_ = traffic.bytes;
    return now - lost_from_ > kLost;
  }
  /// `traffic` and the store must belong to the run in the file.
  void look(const Traffic& traffic) {
    figures_.events = store_.event_count();
    figures_.catching_up = traffic.waiting_bytes > 0 || traffic.items_behind > 0;
    figures_.missing_pieces = traffic.items_missing;
    figures_.damaged_pieces = traffic.items_damaged;
    if (figures_.events == 0) return;
    const std::int64_t origin_ns = store_.origin_ns();
    const std::optional<std::int64_t> zero_ns = traffic.from_begin ? origin_ns : order_.zero_ns;
    if (zero_ns) figures_.since_s = static_cast<double>(origin_ns - *zero_ns) * 1e-9;
  }
  /// Ends the file, once, with a message that says why. `traffic`: see look().
  void finish(const std::string& why, const Traffic& traffic) {
    if (finished_) return;
    if (!writer_) {
      throw std::runtime_error(order_.target + ": nothing was written, because " + why + " before " +
                               order_.endpoint + " answered");
    }
    finished_ = true;
    why_ = why;
    look(traffic);
    const std::int64_t end_ns = figures_.events == 0 ? 0 : store_.end_ns();
    std::string text =
        "This file is a copy of a live run, recorded by a window. It ends because " + why + ".";
    if (figures_.catching_up) {
      text += " The copy was still catching up with the run: it ends " +
              decimal(static_cast<double>(end_ns) * 1e-9, 1) + " s after its first event.";
    }
    writer_->message({end_ns, 0, instrumentation::Severity::info, text + what_is_missing()});
    writer_->finish(store_);
    check();
  }
  [[nodiscard]] std::string what_is_missing() const {
    std::string text;
    if (figures_.missing_pieces > 0) {
      text = " The collector did not have " + pieces(figures_.missing_pieces) +
             " of it any more (chunks of events, and messages).";
      // A rank's chunks precede its row: for a rank without chunks the file shows no gap.
      std::vector<std::uint32_t> gone;
      std::uint64_t events = 0;
      for (const auto& [rank, row] : rows_) {
        if (figures_.catching_up || row.last_ns == 0 || copied_.contains(rank)) continue;
        gone.push_back(rank);
        events += row.events;
      }
      if (!gone.empty())
        text += " Nothing is left of " + std::string(gone.size() == 1 ? "rank " : "ranks ") +
                numbers_text(gone) + ", of which it had received " + std::to_string(events) + " events.";
    }
    if (figures_.damaged_pieces > 0)
      text += " " + pieces(figures_.damaged_pieces) + " could not be read when " +
              (figures_.damaged_pieces == 1 ? "it" : "they") + " arrived.";
    return text;
  }

  struct Figures {
    std::uint64_t events = 0, missing_pieces = 0, damaged_pieces = 0;  ///< see State
    std::optional<double> since_s;                                     ///< see State
    bool catching_up = true;
  };
  /// Totals of a rank in the collector.
  struct Row {
    std::uint64_t events = 0;
    std::int64_t last_ns = 0;  ///< 0: no chunk of the rank yet
  };

  const Order& order_;
  std::optional<store::RecordingWriter> writer_;
  store::Store store_{store::Keep::totals};
  std::map<std::uint32_t, Row> rows_;  ///< by rank
  std::set<std::uint32_t> copied_;     ///< ranks with at least one chunk
  std::uint64_t received_ = 0;         ///< bytes at the last poll
  bool finished_ = false;
  std::string why_;
  Figures figures_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point lost_from_ = began_;
  collector::Viewer viewer_;  ///< destroyed first
};

CopyRecording::~CopyRecording() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void CopyRecording::start(Order order) {
  {
    const std::lock_guard lock(mutex_);
    if (state_.running) return;
    state_ = {};
    state_.running = true;
    state_.catching_up = true;
    state_.target = order.target;
  }
  if (thread_.joinable()) thread_.join();
  stop_ = false;
  const instrumentation::BlockSignals blocked;
  thread_ = std::thread([this, order = std::move(order)] { run(order); });
}

void CopyRecording::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
}

CopyRecording::State CopyRecording::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::string CopyRecording::line(bool brief) const {
  State s = state();
  if (!s.running && !s.done) return {};
  if (!s.problem.empty()) return "The copy failed: " + s.problem;
  if (brief) s.target.erase(0, s.target.rfind('/') + 1);  // npos + 1 is 0
  std::string figures = bytes(static_cast<std::int64_t>(s.bytes)).text();
  figures += s.events == 0 ? ", no event yet"
             : s.since_s   ? ", since " + decimal(*s.since_s, 1) + " s"
                           : ", since the earliest event that the collector has";
  if (s.missing_pieces > 0)
    figures += ", without " + pieces(s.missing_pieces) + " that the collector no longer has";
  if (s.damaged_pieces > 0) figures += ", without " + pieces(s.damaged_pieces) + " that came damaged";
  if (s.running)
    return "Recording a copy to " + s.target + ": " + figures + (s.catching_up ? ", catching up" : "");
  return "Recorded a copy, " + s.target + ": " + figures +
         (s.catching_up ? ", while it was catching up; " : "; ") + s.why_ended;
}

void CopyRecording::run(const Order& order) {
  std::string problem;
  try {
    Copier copier(order);
    Clock::time_point reported{};
    while (!copier.finished()) {
      const bool any = copier.take();
      if (stop_ && !copier.finished()) copier.end("it was stopped");
      if (const Clock::time_point now = Clock::now(); now - reported >= kReport || copier.finished()) {
        reported = now;
        State seen = state();
        copier.report(seen);
        const std::lock_guard lock(mutex_);
        state_ = std::move(seen);
      }
      std::unique_lock lock(mutex_);
      if (!any) wake_.wait_for(lock, kPause, [this] { return stop_.load(); });
    }
  } catch (const std::exception& failed) {
    problem = failed.what();
  }
  const std::lock_guard lock(mutex_);
  state_.running = false;
  state_.done = true;
  state_.problem = std::move(problem);
}

}  // namespace shardscope::gui
