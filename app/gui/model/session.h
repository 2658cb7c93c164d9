// One run in the window: a recording or a live connection, with the data derived from it.
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
  /// Throws std::runtime_error if the file cannot be read.
  static std::unique_ptr<Session> open_file(const std::string& path);
  static std::unique_ptr<Session> connect(const std::string& endpoint, const std::string& key_file = {});
  /// Takes ownership of a store built elsewhere (tests).
  explicit Session(store::Store store);

  /// Unique among all sessions of the process, also for the same source opened again: the key of everything
  /// cached for a run.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] const store::Store& store() const noexcept { return store_; }
  [[nodiscard]] bool live() const noexcept { return viewer_ != nullptr; }
  [[nodiscard]] collector::Viewer* viewer() const noexcept { return viewer_.get(); }
  [[nodiscard]] collector::Viewer::Link link() const;
  [[nodiscard]] collector::ControlState control() const;
  /// Traffic of a live run, also after disconnect().
  [[nodiscard]] collector::Viewer::Traffic traffic() const;
  [[nodiscard]] const ConnectionRates& rates() const noexcept { return rates_; }
  /// Ends the connection; keeps the received events. The session is then neither live nor a recording.
  void disconnect();
  [[nodiscard]] bool disconnected() const noexcept { return disconnected_; }
  /// A complete recording; false for a live run, also after disconnect().
  [[nodiscard]] bool recorded() const noexcept { return !viewer_ && !disconnected_; }
  [[nodiscard]] const std::string& key_file() const noexcept { return key_file_; }
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  [[nodiscard]] const std::optional<store::RecordingInfo>& info() const noexcept { return info_; }

  /// Time to load a recording: until it could be drawn, and from then on until all was analysed (0: not yet).
  /// nullopt for a live run.
  struct LoadTime {
    std::chrono::nanoseconds opened{0}, analysed{0};
  };
  [[nodiscard]] std::optional<LoadTime> load_time() const;

  /// Gives this thread the store while the turn lasts; between turns the analysis of a live run reads it.
  /// poll() and settle() take a turn themselves.
  [[nodiscard]] Turns::Turn turn() { return turns_.first(); }
  /// Processes received messages within about `budget`, and new results of the analysis. True when there is
  /// something new to draw.
  bool poll(std::chrono::microseconds budget);

  /// Call around drawing, within a turn. In a window each frame reads for a bounded time and the next frames
  /// continue; a picture, after settle(), is complete at once. The analysis, which reads in between, has no
  /// such limit.
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
  /// Runs `shardscope findings` once to predict the gains of a recording's findings; findings() then
  /// contains them. No effect for a live run, before the analysis is complete, or if nothing can be
  /// predicted.
  void ask_what_if();
  [[nodiscard]] const AdviceRun& advice() const noexcept { return advice_; }
  /// Replaced when summary(), findings() or any other result changes.
  [[nodiscard]] const std::shared_ptr<const Analysis>& analysis() const noexcept { return analysis_; }
  /// "partial: 120 of 575 steps analysed" while summary, findings and step times do not cover all
  /// steps; else empty. Shown by every panel that uses them. `brief`: without the words after the
  /// numbers.
  [[nodiscard]] std::string partial(bool brief = false) const;
  /// The diagnosis while the live run hangs and ranks wait; else null.
  [[nodiscard]] const analysis::Hang* current_hang() const noexcept { return hangs_.current_hang(); }
  /// The diagnosis shown by the Why panel, also for the end of a recording.
  [[nodiscard]] const analysis::Hang& why() { return hangs_.diagnosis(store_, run_state()); }
  [[nodiscard]] std::uint64_t why_revision() const noexcept { return hangs_.revision(); }
  /// Sets the visible range: of a long run only this range is indexed.
  void look_at(std::int64_t begin_ns, std::int64_t end_ns);
  /// Null until the step has ended on every rank and is analysed.
  [[nodiscard]] const StepTimes* step_times(std::uint32_t step) const;
  /// Waits until all received data is indexed and analysed (screenshots, tests). False after `most`;
  /// partial() then is not empty.
  bool settle(std::chrono::milliseconds most = std::chrono::minutes(1));
  [[nodiscard]] const ElementAxis& elements(ElementScale scale);
  [[nodiscard]] HeatRows& heat() noexcept { return heat_; }
  /// Rows of ranks, or an index, are still being read between the frames: poll() again soon.
  [[nodiscard]] bool reading() const noexcept { return reading_ || next_window_.has_value(); }
  [[nodiscard]] RankTracks& tracks() noexcept { return tracks_; }

 private:
  Session();
  [[nodiscard]] HangWatch::Run run_state() const;
  void derive();
  /// Call when the store has grown, or another range is looked at.
  void update_index();
  /// Continues next_index_ for a short time; true when it has taken the place of index_.
  bool advance_index();
  bool adopt();
  bool adopt_advice();

  const std::uint64_t number_;
  store::Store store_;
  std::unique_ptr<collector::Viewer> viewer_;
  std::optional<store::RecordingInfo> info_;
  std::chrono::nanoseconds opened_in_{0};
  std::string source_, key_file_;
  bool disconnected_ = false;
  collector::Viewer::Traffic traffic_;  ///< at the time of disconnect()
  ConnectionRates rates_;
  RunIndex index_;
  /// Of a part of a long run: read between frames, while index_ is shown.
  RunIndex next_index_;
  std::optional<RunIndex::Window> next_window_;  ///< of next_index_; nullopt: nothing is read
  RunIndex::Window looked_at_{.begin_ns = 0, .end_ns = 0};
  std::uint64_t indexed_revision_ = UINT64_MAX;
  Completeness indexed_as_ = Completeness::growing;
  std::size_t damage_shown_ = 0;
  bool in_window_ = false, wants_more_ = false, reading_ = false;
  HeatRows heat_;
  RankTracks tracks_;
  HangWatch hangs_;
  std::map<ElementScale, ElementAxis> elements_;
  TablesKey elements_of_;
  std::string control_seen_;
  std::shared_ptr<const Analysis> analysis_ = std::make_shared<const Analysis>();
  std::shared_ptr<const Analysis> of_analyst_;  ///< as returned by the analyst: without advice_'s gains
  AdviceRun advice_;
  Turns turns_;
  std::unique_ptr<Analyst> analyst_;  ///< last member: its thread reads those above
};

}  // namespace shardscope::gui
