#include "app/gui/model/copy_recording.h"

#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <set>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "app/collector/viewer.h"
#include "app/gui/model/format.h"
#include "app/store/chunk.h"
#include "app/store/recording.h"
#include "app/store/store.h"
#include "instrumentation/sockets.h"

namespace shardscope::gui {
namespace {

using Link = collector::Viewer::Link;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{20};    ///< between two looks, where nothing has come
constexpr std::chrono::milliseconds kReport{500};  ///< between two commits, after which the size is read
constexpr std::chrono::seconds kNoAnswer{10};      ///< of a collector: the copy is given up

std::uint64_t bytes_at(const std::string& path) {
  std::error_code none;
  const std::uintmax_t found = std::filesystem::file_size(path, none);
  return none ? 0 : found;
}

}  // namespace

/// The file, and the sums of what is in it, which it ends with.
class CopyRecording::Copier : public collector::ViewObserver {
 public:
  explicit Copier(const Order& order)
      : order_(order), writer_(order.target), viewer_(order.endpoint, order.key_file, this) {}

  void chunk(const store::Chunk& chunk, std::span<const std::byte> encoded) override {
    if (finished_) return;
    if (begun_.insert(chunk.rank).second) missing_pieces_ += chunk.sequence;
    writer_.append(chunk, encoded);
  }
  void tables(const instrumentation::RunTables& tables) override {
    if (!finished_) writer_.tables(tables.rank, tables);
  }
  void rank(const store::RankRow& row) override {
    if (!finished_) writer_.rank(row);
  }
  void message(const store::Message& message) override {
    if (!finished_) writer_.message(message);
  }
  void name(std::uint32_t rank, std::uint32_t id, const std::string& name) override {
    if (!finished_) writer_.name(rank, id, name);
  }
  void another_run() override { finish("another collector answers at " + order_.endpoint); }

  /// Takes what has arrived. Returns whether there was anything.
  bool take() {
    const bool any = viewer_.poll(store_, kPause);
    if (const std::string error = writer_.error(); !error.empty()) throw std::runtime_error(error);
    const Link link = viewer_.link();
    if (link != Link::connecting) answered_ = true;
    if (link == Link::ended) {
      viewer_.poll(store_, kPause);  // how its ranks ended may have come only since
      finish("the run or its collector ended");
    }
    if (link == Link::lost) finish("the connection was lost");
    if (!answered_ && Clock::now() - began_ > kNoAnswer) {
      const std::string note = viewer_.control().note;
      throw std::runtime_error(order_.target + ": " + order_.endpoint + " does not answer" +
                               (note.empty() ? "" : ": " + note));
    }
    return any;
  }
  /// Ends the file, once; it says in it why.
  void finish(const std::string& why) {
    if (finished_) return;
    finished_ = true;
    why_ = why;
    std::string text =
        "This file is a copy of a live run, recorded by a window. It ends because " + why + ".";
    if (missing_pieces_ > 0) {
      text += " The collector did not have " + std::to_string(missing_pieces_) +
              " pieces from before its begin any more.";
    }
    const store::Message end{store_.event_count() == 0 ? 0 : store_.end_ns(), 0,
                             instrumentation::Severity::info, text};
    writer_.message(end);
    writer_.finish(store_);
    if (const std::string error = writer_.error(); !error.empty()) throw std::runtime_error(error);
  }
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  /// Commits what was taken in, so that it survives a crash.
  void report(State& state) {
    writer_.commit();
    state.bytes = bytes_at(order_.target) + bytes_at(order_.target + "-wal");
    state.events = store_.event_count();
    state.missing_pieces = missing_pieces_;
    state.catching_up = viewer_.link() == Link::connecting || viewer_.link() == Link::catching_up;
    state.why_ended = why_;
    if (state.events > 0)
      state.since_s =
          static_cast<double>(store_.origin_ns() - order_.zero_ns.value_or(store_.origin_ns())) * 1e-9;
  }

 private:
  const Order& order_;
  store::RecordingWriter writer_;
  store::Store store_{store::Keep::totals};
  std::set<std::uint32_t> begun_;     ///< ranks that a chunk has come of
  std::uint64_t missing_pieces_ = 0;  ///< chunks are numbered from 0
  bool answered_ = false, finished_ = false;
  std::string why_;
  const Clock::time_point began_ = Clock::now();
  collector::Viewer viewer_;  ///< gone first
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

std::string CopyRecording::line() const {
  const State s = state();
  if (!s.running && !s.done) return {};
  if (!s.problem.empty()) return "The copy failed: " + s.problem;
  std::string figures = bytes(static_cast<std::int64_t>(s.bytes)).text();
  figures += s.since_s ? ", since " + decimal(*s.since_s, 1) + " s" : ", no event yet";
  if (s.missing_pieces > 0)
    figures += ", without " + grouped(static_cast<std::int64_t>(s.missing_pieces)) +
               " earlier pieces that the collector has dropped";
  if (s.running)
    return "Recording a copy to " + s.target + ": " + figures + (s.catching_up ? ", catching up" : "");
  return "Recorded a copy, " + s.target + ": " + figures + "; " + s.why_ended;
}

void CopyRecording::run(const Order& order) {
  std::string problem;
  try {
    Copier copier(order);
    Clock::time_point reported{};
    while (!copier.finished()) {
      const bool any = copier.take();
      if (stop_) copier.finish("it was stopped");
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
