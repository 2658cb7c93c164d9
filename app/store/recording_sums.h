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
#include "app/store/part_sums.h"
#include "app/store/rank_figures.h"
#include "app/store/retention.h"
#include "app/store/span_sketches.h"
#include "app/store/store.h"

namespace shardscope::store {

/// Makes the tables.
void create_sums(Database& database);

/// Deletes what the plan gives, within the transaction that is open, and writes its sums.
class SumsWriter {
 public:
  /// Sums of a rank that are kept apart: how finely the time is known that has no events any more.
  static constexpr std::size_t kMostSums = 32;

  /// Whether the recording is one file or has a next part (rotation.h).
  enum class Goes : std::uint8_t { in_one_file, on_in_parts };

  /// Makes the tables.
  SumsWriter(Database& database, const Retention& retention, Goes goes = Goes::in_one_file);
  /// The rows of a block were written: RetentionPlan::wrote().
  void wrote(const Block& block, std::int64_t id, std::uint64_t bytes);
  /// The same, of a recording that goes on in parts: PartSums::add().
  void wrote_to_part(const std::vector<std::byte>& packed, std::int64_t id, const Chunk& chunk);
  /// Sketches of all spans of the run.
  [[nodiscard]] SpanSketches& sketches() noexcept { return sketches_; }
  /// Of all steps of the run, by rank.
  [[nodiscard]] OwnTimes& own_times() noexcept { return own_times_; }
  void keep(Moment moment) { (void)plan_.keep(std::move(moment)); }
  /// `store`: of all of the run, for its steps. `now_ns`: RetentionPlan::now().
  void retain(Database& database, const Store& store, std::int64_t now_ns);
  /// As retain(), at the end.
  void finish(Database& database, const Store& store);

  // A change of parts: write_totals(), commit, begin_part(), and part_has_begun() once the next part is the
  // one that is written.
  /// Distributions and own times, which are written every minute, as they are now.
  void write_totals(Database& database);
  /// Writes to the next part's tables, which are empty, what all parts before it sum up to. The file of the
  /// part that ends is attached to `next` as `before`. Where it throws, nothing has changed here.
  void begin_part(Database& next, const Store& store);
  void part_has_begun();

 private:
  struct Sum {
    std::int64_t id = 0;
    std::uint64_t sequence = 0, until = 0;  ///< chunks [sequence, until)
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t events = 0;
    bool full = false;  ///< its counts and those of the next one do not fit one sum, nor ever will
  };
  void delete_rows(Database& database, std::uint32_t rank, const std::vector<std::int64_t>& rows);
  void put(Database& database, const WholeSum& sum);
  [[nodiscard]] WholeSum get(Database& database, std::int64_t id) const;
  /// False where no two neighbours can become one.
  bool join_some(Database& database, std::uint32_t rank);
  void write_steps(Database& database, const Store& store, bool all);
  void write_moments(Database& database);
  void write_sketches(Database& database);
  void write_own_times(Database& database);

  bool limited_ = false;
  std::uint64_t max_bytes_ = 0;
  RetentionPlan plan_;
  std::optional<PartSums> part_;                    ///< where there will be a next part
  RareEvents rare_;                                 ///< what sums have
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
