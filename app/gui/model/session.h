// One run on the dashboard: a recording or a live connection, with what is derived from it and kept up.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/digest.h"
#include "app/analysis/summary.h"
#include "app/collector/viewer.h"
#include "app/gui/model/element_axis.h"
#include "app/gui/model/run_index.h"
#include "app/store/recording.h"
#include "app/store/store.h"

namespace shardscope::gui {

using TimePartition = analysis::TimePartition;

/// The partition of time of each rank in one completed step.
struct StepTimes {
  std::vector<TimePartition> ranks;  ///< in the order of store.ranks()
};

class Session {
 public:
  /// Throws std::runtime_error when the file cannot be read.
  static std::unique_ptr<Session> open_file(const std::string& path);
  static std::unique_ptr<Session> connect(const std::string& endpoint, const std::string& key_file = {});
  /// Takes over a store that was made elsewhere (tests).
  explicit Session(store::Store store);

  [[nodiscard]] const store::Store& store() const noexcept { return store_; }
  [[nodiscard]] bool live() const noexcept { return viewer_ != nullptr; }
  [[nodiscard]] collector::Viewer* viewer() const noexcept { return viewer_.get(); }
  [[nodiscard]] collector::Viewer::Link link() const;
  [[nodiscard]] collector::ControlState control() const;
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  [[nodiscard]] const std::optional<store::RecordingInfo>& info() const noexcept { return info_; }

  /// Takes what has arrived and brings the derived data up to date, within about `budget`. True when
  /// there is anything new to draw.
  bool poll(std::chrono::microseconds budget);

  [[nodiscard]] const RunIndex& index() const noexcept { return index_; }
  [[nodiscard]] const analysis::Summary& summary() const noexcept { return summary_; }
  [[nodiscard]] const std::vector<analysis::Finding>& findings() const noexcept { return findings_; }
  /// Of a long run the summary and the findings are made a little at a time: "40 of 2 000 steps" while they
  /// are not of every step that has ended; else empty.
  [[nodiscard]] std::string summarized_so_far() const;
  [[nodiscard]] const std::vector<analysis::Digest::Wait>& longest_waits() const noexcept {
    return digest_.longest_waits();
  }
  /// What is looked at: of a long run only what lies there is indexed.
  void look_at(std::int64_t begin_ns, std::int64_t end_ns);
  /// Null while the step has not ended or has not been computed yet (a few are computed per poll).
  [[nodiscard]] const StepTimes* step_times(std::size_t step_index) const;
  /// Ends the wait for derived data: everything is computed now (screenshots, tests).
  void settle();
  [[nodiscard]] const ElementAxis& elements(ElementScale scale);

 private:
  Session() = default;
  void derive(std::chrono::microseconds budget);
  void update_index();
  void update_summary(std::chrono::microseconds budget);
  void compute_step_times(std::chrono::microseconds budget);

  store::Store store_;
  std::unique_ptr<collector::Viewer> viewer_;
  std::optional<store::RecordingInfo> info_;
  std::string source_;
  RunIndex index_;
  analysis::Summary summary_;
  std::vector<analysis::Finding> findings_;
  analysis::Digest digest_;
  std::int64_t digest_origin_ns_ = 0;
  std::uint64_t digest_events_ = 0;
  std::size_t summarized_steps_ = 0, damage_shown_ = 0;
  bool digest_whole_ = false;
  RunIndex::Window looked_at_{.begin_ns = 0, .end_ns = 0};
  std::vector<std::optional<StepTimes>> step_times_;
  std::size_t step_times_done_ = 0;
  StepTimes next_step_times_;        ///< of the ranks done so far
  std::size_t next_step_ranks_ = 0;  ///< ranks there were when it was begun
  std::uint64_t indexed_revision_ = UINT64_MAX;
  Completeness indexed_as_ = Completeness::growing;
  std::uint64_t summarized_revision_ = UINT64_MAX;
  std::chrono::steady_clock::time_point next_summary_{};
  std::map<ElementScale, ElementAxis> elements_;
  std::size_t elements_params_ = 0;
  std::string control_seen_;
};

}  // namespace shardscope::gui
