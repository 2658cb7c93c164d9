// Tables `sums`, `sum_steps`, `moments`, `sketches` and `own_times` of a recording that does not keep all
// events in one file: docs/recording.md, "What was not kept".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
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

/// Creates the tables and sets the file's version.
void create_sums(Database& database);

/// Deletes the blocks that RetentionPlan selects and writes their sums, within the open transaction.
class SumsWriter {
 public:
  /// Most sums of a rank; beyond it neighbours are joined. This is the resolution in time of deleted events.
  static constexpr std::size_t kMostSums = 32;
  /// Likewise with limits in a recording in parts: of events deleted from the part, and of earlier parts.
  static constexpr std::size_t kMostSumsOfPart = kMostSums / 2;

  /// Whether the recording is one file or consists of parts (rotation.h).
  enum class Files : std::uint8_t { one, parts };

  /// Creates the tables.
  SumsWriter(Database& database, const Retention& retention, Files files = Files::one);
  /// Call when the rows of a block were written: RetentionPlan::wrote().
  void wrote(const Block& block, std::int64_t id, std::uint64_t bytes);
  /// Call as well; it has an effect in a recording in parts only: PartSums::add().
  void wrote_to_part(const std::vector<std::byte>& packed, std::int64_t id, const Chunk& chunk);
  /// Sketches of all spans of the run.
  [[nodiscard]] SpanSketches& sketches() noexcept { return sketches_; }
  /// Own times of all steps of the run, by rank.
  [[nodiscard]] OwnTimes& own_times() noexcept { return own_times_; }
  void keep(Moment moment) { (void)plan_.keep(std::move(moment)); }
  /// Deletes the blocks that are due and updates the tables. `store` must hold the whole run; its steps
  /// are used. `now_ns`: RetentionPlan::now().
  void retain(Database& database, const Store& store, std::int64_t now_ns);
  /// Like retain(), when a file ends: also writes all steps and totals.
  void finish(Database& database, const Store& store);

  // A change of parts: finish(), commit, begin_part(), and part_has_begun() once events are written to the
  // next part.
  /// Writes distributions and own times. retain() does this every minute, finish() always.
  void write_totals(Database& database);
  /// Writes the sums of all earlier parts to the empty tables of `next`. The file of the part that ends must
  /// be attached to `next` as `before`. If it throws, this object is unchanged.
  void begin_part(Database& next, const Store& store);
  /// `deleted_until_ns`: end of the newest deleted part, collector clock; INT64_MIN: none was deleted.
  void part_has_begun(std::int64_t deleted_until_ns);

  /// Once: that the file cannot be as small as its limit. Empty: it can, or that was returned before.
  [[nodiscard]] std::string take_warning() { return std::exchange(warning_, {}); }

 private:
  struct Sum {
    std::int64_t id = 0;
    std::uint64_t sequence = 0, until = 0;  ///< chunks [sequence, until)
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t events = 0;
    bool earlier = false;  ///< of an earlier part. It is not joined with one of this part: readers use either
    bool full = false;     ///< cannot be joined with the next one: counts would overflow
  };
  void delete_rows(Database& database, std::uint32_t rank, const std::vector<std::int64_t>& rows);
  void put(Database& database, const WholeSum& sum, bool earlier);
  [[nodiscard]] WholeSum get(Database& database, std::int64_t id) const;
  /// Joins two neighbours, of earlier parts or of this one. False if no two can be joined.
  bool join_some(Database& database, std::uint32_t rank, bool earlier);
  /// Joins as many as are too many.
  void join(Database& database, std::uint32_t rank, bool earlier);
  void check_least(std::uint64_t used_bytes);
  void write_steps(Database& database, const Store& store, bool all);
  void write_ends(Database& database, const Store& store);
  void begin_again(Database& database, const Store& store);
  void write_moments(Database& database);
  void write_sketches(Database& database);
  void write_own_times(Database& database);

  bool limited_ = false;
  std::uint64_t max_bytes_ = 0;
  bool least_reported_ = false;
  std::string warning_;
  RetentionPlan plan_;
  std::optional<PartSums> part_;                    ///< only in a recording in parts
  RareEvents rare_;                                 ///< limits rare events in sums
  std::map<std::uint32_t, std::vector<Sum>> sums_;  ///< by rank, sorted by sequence
  std::optional<std::uint32_t> through_;            ///< last step with a deleted event
  std::optional<std::uint32_t> written_;            ///< through_ when steps were last written
  std::set<std::uint32_t> open_;                    ///< written steps that had not ended then
  std::size_t rewinds_ = 0;                         ///< of the store's that are taken into account
  std::optional<std::uint32_t> again_from_;         ///< steps that began again are written from here on
  std::uint64_t moments_written_ = 0;
  SpanSketches sketches_;
  OwnTimes own_times_;
  std::chrono::steady_clock::time_point totals_written_ = std::chrono::steady_clock::now();
};

/// A row of table `sums`. Rows are sorted by id; a sum has the id of its last chunk.
struct StoredSum {
  std::int64_t id = 0;
  std::uint64_t events = 0;
  BlockOrigin origin;
  std::vector<ev::Event> rare;
  std::vector<std::byte> bytes;  ///< the sum as stored
  std::unique_ptr<Block> block;  ///< the sum decoded; with SumPart::whole
  /// With SumPart::figures: set in the first sum of each contiguous sequence of a rank's sums, for all of
  /// them.
  std::unique_ptr<RankFigures> figures;
};
struct StoredSums {
  std::vector<StoredSum> sums;
  std::vector<StepRow> steps;  ///< collector clock
  std::optional<std::uint32_t> through;
  std::int64_t origin_ns = 0;  ///< smallest begin of a sum, collector clock
  std::vector<Moment> moments;
  Retention limits;
};
/// Sorted by key. Empty for a recording without limits and parts. Throws as read_sums() does.
[[nodiscard]] std::vector<std::pair<SketchKey, QuantileSketch>> read_sketches(Database& database);
/// Sorted by rank and step. Empty for a recording without limits and parts. Throws as read_sums() does.
[[nodiscard]] std::vector<OwnTimeRow> read_own_times(Database& database);
/// How much of each sum read_sums() decodes.
enum class SumPart : std::uint8_t { whole, figures };
/// Throws std::runtime_error that names what is damaged. `meanwhile` is called once, on the calling thread,
/// while other threads decode: it may read other tables.
[[nodiscard]] StoredSums read_sums(Database& database, SumPart part, const std::function<void()>& meanwhile);
/// By rank: smaller sequence numbers were read from earlier parts of the recording.
using ReadUntil = std::map<std::uint32_t, std::uint64_t>;
/// The sums of a part, without those of what was read from earlier ones. Throws as read_sums() does.
[[nodiscard]] std::vector<StoredSum> read_sums_of_part(Database& database, SumPart part,
                                                       const ReadUntil& until);

}  // namespace shardscope::store
