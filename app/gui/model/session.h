// One run on the dashboard: a recording or a live connection, with what is derived from it and kept up.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/collector/viewer.h"
#include "app/gui/model/advice_run.h"
#include "app/gui/model/analyst.h"
#include "app/gui/model/connection_rates.h"
#include "app/gui/model/element_axis.h"
#include "app/gui/model/hang_watch.h"
#include "app/gui/model/heat_rows.h"
#include "app/gui/model/rank_tracks.h"
#include "app/gui/model/run_index.h"
#include "app/gui/model/tables_key.h"
#include "app/store/recording.h"
#include "app/store/store.h"

namespace shardscope::gui {

class Session {
 public:
  /// Throws std::runtime_error when the file cannot be read.
  static std::unique_ptr<Session> open_file(const std::string& path);
  static std::unique_ptr<Session> connect(const std::string& endpoint, const std::string& key_file = {});
  /// Takes over a store that was made elsewhere (tests).
  explicit Session(store::Store store);

  /// Of no other session of this program, also not of one that was opened of the same source before: what is
  /// kept of a run is kept by it.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] const store::Store& store() const noexcept { return store_; }
  [[nodiscard]] bool live() const noexcept { return viewer_ != nullptr; }
  [[nodiscard]] collector::Viewer* viewer() const noexcept { return viewer_.get(); }
  [[nodiscard]] collector::Viewer::Link link() const;
  [[nodiscard]] collector::ControlState control() const;
  /// Of a live run, also after it was disconnected from.
  [[nodiscard]] collector::Viewer::Traffic traffic() const;
  [[nodiscard]] const ConnectionRates& rates() const noexcept { return rates_; }
  /// Ends the connection; what has arrived stays. It is no live run any more, and has no file either.
  void disconnect();
  [[nodiscard]] bool disconnected() const noexcept { return disconnected_; }
  /// A whole run that does not grow; a live one is none, not even after it was disconnected from.
  [[nodiscard]] bool recorded() const noexcept { return !viewer_ && !disconnected_; }
  [[nodiscard]] const std::string& key_file() const noexcept { return key_file_; }
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  [[nodiscard]] const std::optional<store::RecordingInfo>& info() const noexcept { return info_; }

  /// How long opening a recording took: until it could be drawn, and from then until all of it was analysed
  /// (0: it is not yet). Of a live run nothing.
  struct LoadTime {
    std::chrono::nanoseconds opened{0}, analysed{0};
  };
  [[nodiscard]] std::optional<LoadTime> load_time() const;

  /// The store is this thread's while the turn lasts; of a live run the analysis reads it in between. poll()
  /// and settle() take one themselves.
  [[nodiscard]] Turns::Turn turn() { return turns_.first(); }
  /// Takes what has arrived, within about `budget`, and what the analysis has made meanwhile. True when there
  /// is anything new to draw.
  bool poll(std::chrono::microseconds budget);

  /// Around drawing, within a turn: in a window a frame reads for a bounded time and the next ones go on; a
  /// picture, after settle(), is whole at once. What the analysis reads in between has no limit and costs
  /// none.
  void begin_frame();
  void end_frame();
  [[nodiscard]] bool in_window() const noexcept { return in_window_; }

  [[nodiscard]] const RunIndex& index() const noexcept { return index_; }
  [[nodiscard]] const analysis::Summary& summary() const noexcept { return analysis_->summary; }
  [[nodiscard]] const std::vector<analysis::Finding>& findings() const noexcept {
    return analysis_->findings;
  }
  [[nodiscard]] const std::vector<analysis::Digest::Wait>& longest_waits() const noexcept {
    return analysis_->longest_waits;
  }
  /// Asks what-if, once, what the changes that a recording's findings name would give; findings() has its
  /// answer when it has arrived. Nothing of a run that grows, is not wholly analysed yet, or cannot be
  /// played.
  void ask_what_if();
  [[nodiscard]] const AdviceRun& advice() const noexcept { return advice_; }
  /// Changes with summary(), findings() and whatever else is analysed.
  [[nodiscard]] const std::shared_ptr<const Analysis>& analysis() const noexcept { return analysis_; }
  /// "partial: 120 of 575 steps analysed" while summary, findings and times of steps are not of all that
  /// there is; else empty. Every panel that shows any of them shows this. `brief`: without the words after
  /// the figures.
  [[nodiscard]] std::string partial(bool brief = false) const;
  /// While the live run hangs and ranks wait; else null.
  [[nodiscard]] const analysis::Hang* current_hang() const noexcept { return hangs_.current_hang(); }
  /// What the Why panel shows, also of a recording's end.
  [[nodiscard]] const analysis::Hang& why() { return hangs_.diagnosis(store_, run_state()); }
  [[nodiscard]] std::uint64_t why_revision() const noexcept { return hangs_.revision(); }
  /// What is looked at: of a long run only what lies there is indexed.
  void look_at(std::int64_t begin_ns, std::int64_t end_ns);
  /// Null while the step has not ended on every rank or is not analysed yet.
  [[nodiscard]] const StepTimes* step_times(std::uint32_t step) const;
  /// Waits for what is derived from what has arrived (screenshots, tests). False when it took longer than
  /// `most`; partial() says so.
  bool settle(std::chrono::milliseconds most = std::chrono::minutes(1));
  [[nodiscard]] const ElementAxis& elements(ElementScale scale);
  [[nodiscard]] HeatRows& heat() noexcept { return heat_; }
  [[nodiscard]] RankTracks& tracks() noexcept { return tracks_; }

 private:
  Session();
  [[nodiscard]] HangWatch::Run run_state() const;
  void derive();
  void update_index();
  bool adopt();
  bool adopt_advice();

  const std::uint64_t number_;
  store::Store store_;
  std::unique_ptr<collector::Viewer> viewer_;
  std::optional<store::RecordingInfo> info_;
  std::chrono::nanoseconds opened_in_{0};
  std::string source_, key_file_;
  bool disconnected_ = false;
  collector::Viewer::Traffic traffic_;  ///< up to when it was disconnected from
  ConnectionRates rates_;
  RunIndex index_;
  RunIndex::Window looked_at_{.begin_ns = 0, .end_ns = 0};
  std::uint64_t indexed_revision_ = UINT64_MAX;
  Completeness indexed_as_ = Completeness::growing;
  std::size_t damage_shown_ = 0;
  bool in_window_ = false, wants_more_ = false;
  HeatRows heat_;
  RankTracks tracks_;
  HangWatch hangs_;
  std::map<ElementScale, ElementAxis> elements_;
  TablesKey elements_of_;
  std::string control_seen_;
  std::shared_ptr<const Analysis> analysis_ = std::make_shared<const Analysis>();
  std::shared_ptr<const Analysis> of_analyst_;  ///< as it was taken from it: without advice_'s answer
  AdviceRun advice_;
  Turns turns_;
  std::unique_ptr<Analyst> analyst_;  ///< last: its thread reads what is above
};

}  // namespace shardscope::gui
