// Tables `sums`, `sum_steps` and `moments` of a recording that keeps a part of its run at full detail:
// docs/recording.md, "What was not kept".
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/store/block.h"
#include "app/store/database.h"
#include "app/store/own_times.h"
#include "app/store/rank_figures.h"
#include "app/store/retention.h"
#include "app/store/span_sketches.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Deletes what the plan gives, within the transaction that is open, and writes its sums.
class SumsWriter {
 public:
  /// Sums of a rank that are kept apart: how finely the time is known that has no events any more.
  static constexpr std::size_t kMostSums = 32;

  /// Makes the tables.
  SumsWriter(Database& database, const Retention& retention);
  /// The rows of a block were written: RetentionPlan::wrote().
  void wrote(const Block& block, std::int64_t id, std::uint64_t bytes);
  /// Sketches of all spans of the run.
  [[nodiscard]] SpanSketches& sketches() noexcept { return sketches_; }
  /// Of all steps of the run, by rank.
  [[nodiscard]] OwnTimes& own_times() noexcept { return own_times_; }
  void keep(Moment moment) { (void)plan_.keep(std::move(moment)); }
  /// `store`: of all of the run, for its steps. `now_ns`: RetentionPlan::now().
  void retain(Database& database, const Store& store, std::int64_t now_ns);
  /// As retain(), at the end.
  void finish(Database& database, const Store& store);

 private:
  struct Sum {
    std::int64_t id = 0;
    std::uint64_t sequence = 0, until = 0;  ///< chunks [sequence, until)
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t events = 0;
    bool full = false;  ///< its counts and those of the next one do not fit one sum, nor ever will
  };
  struct Whole {
    Block block;
    std::vector<ev::Event> rare;  ///< collector clock
    std::uint64_t events = 0;
    std::int64_t id = 0;
  };
  void delete_rows(Database& database, std::uint32_t rank, const std::vector<std::int64_t>& rows);
  /// Leaves of a deleted block's rare events what is kept: the rank's first invalidation of its trace, and a
  /// limited number of others.
  void limit_rare(std::uint32_t rank, std::vector<ev::Event>& rare);
  void put(Database& database, const Whole& sum);
  [[nodiscard]] Whole get(Database& database, std::int64_t id) const;
  /// False where no two neighbours can become one.
  bool join_some(Database& database, std::uint32_t rank);
  void write_steps(Database& database, const Store& store, bool all);
  void write_moments(Database& database);
  void write_sketches(Database& database);
  void write_own_times(Database& database);

  struct Rare {
    std::map<ev::EventKind, std::uint64_t> firsts;  ///< time of each kind of which the run's first is kept
    std::size_t each = 0;                           ///< of kinds of which each is kept
  };
  std::uint64_t max_bytes_ = 0;
  RetentionPlan plan_;
  std::map<std::uint32_t, Rare> rare_;              ///< by rank: what sums have
  std::map<std::uint32_t, std::vector<Sum>> sums_;  ///< by rank, in order
  std::optional<std::uint32_t> through_;            ///< step: the last of which an event was deleted
  std::optional<std::uint32_t> written_;            ///< through_ when steps were last written
  std::uint64_t moments_written_ = 0;
  SpanSketches sketches_;
  OwnTimes own_times_;
  std::chrono::steady_clock::time_point totals_written_ = std::chrono::steady_clock::now();
};

/// What a reader finds in these tables, in order of id: the sum of a stretch has the id of its last chunk.
struct StoredSum {
  std::int64_t id = 0;
  std::uint64_t events = 0;
  BlockOrigin origin;
  std::vector<ev::Event> rare;
  std::vector<std::byte> bytes;  ///< all of it as it is stored
  std::unique_ptr<Block> block;  ///< the same, decoded: SumPart::whole
  /// SumPart::figures, where nothing of the sum before is next to it: with those of the sums that follow
  /// without a gap.
  std::unique_ptr<RankFigures> figures;
};
struct StoredSums {
  std::vector<StoredSum> sums;
  std::vector<StepRow> steps;  ///< collector clock
  std::optional<std::uint32_t> through;
  std::int64_t origin_ns = 0;  ///< of the sums, collector clock
  std::vector<Moment> moments;
  Retention limits;
};
/// By key; of a recording that keeps everything there are none. Throws std::runtime_error likewise.
[[nodiscard]] std::vector<std::pair<SketchKey, QuantileSketch>> read_sketches(Database& database);
/// By rank and step; none of a recording that keeps everything. Throws std::runtime_error likewise.
[[nodiscard]] std::vector<OwnTimeRow> read_own_times(Database& database);
/// What is made of each sum now.
enum class SumPart : std::uint8_t { whole, figures };
/// Throws std::runtime_error naming what is damaged.
[[nodiscard]] StoredSums read_sums(Database& database, SumPart part);

}  // namespace shardscope::store
