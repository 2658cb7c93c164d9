// Part of Compare: the tables of two runs, one of which is shown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "app/gui/model/compared_series.h"
#include "app/gui/views/choices.h"
#include "app/gui/views/table_view.h"

namespace shardscope::gui {

class ComparedTables {
 public:
  enum class Shown : std::uint8_t {
    figures,
    phases,
    modules,
    waits,
    kernels,
    parameters,
    collectives,
    memory,
    settings
  };

  /// Which table is shown.
  [[nodiscard]] Choice choice();
  /// Of which rank times are; nullopt: each run's lowest. `measured`: times are of the steps of the measured
  /// range, `within`; nullopt: it has no whole step, and times are of all.
  void look_at(std::optional<std::uint32_t> rank, bool measured,
               const std::optional<analysis::StepBounds>& within);
  /// Makes the table shown, where it is not made. Call before chosen_row() and draw().
  void prepare(const AppState& app, const analysis::Comparison& comparison, const ComparedDigests& digests);
  /// A click on a row goes to what it names.
  void draw(Context& ctx, Rect room, const analysis::Comparison& comparison);
  /// The row that is chosen in the table shown, if that is one of times per step; valid until the next
  /// draw().
  [[nodiscard]] const ComparedSeries* chosen_row() const;
  void choose_none() { chosen_[static_cast<std::size_t>(shown_)].reset(); }
  /// The runs have changed: the tables are made again.
  void forget() { made_ = {}; }

 private:
  static constexpr std::size_t kTables = 9;
  void figures(Context& ctx, const Rect& room, const analysis::Comparison& comparison);
  void clicked(Context& ctx, std::size_t row);

  Shown shown_ = Shown::figures;
  std::optional<std::uint32_t> rank_;
  bool measured_ = false;
  std::optional<analysis::StepBounds> within_;
  std::array<Table, kTables> tables_;
  std::array<bool, kTables> made_{};
  std::array<TableState, kTables> states_;
  std::array<ComparedSteps, kTables> series_;  ///< of those that have times per step
  /// Name and figure of the chosen row: tables of a live run are made again.
  std::array<std::optional<std::pair<std::string, std::string>>, kTables> chosen_;
};

}  // namespace shardscope::gui
