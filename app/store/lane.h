// One lane: begin and end events become spans, row by row of nesting depth.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "app/store/density_pyramid.h"
#include "app/store/missing_begins.h"
#include "app/store/store_rows.h"

namespace shardscope::store {

/// [Note: spans with a missing end or begin]
/// After a drop an end may never arrive. A span is never shown longer than it is known to have lasted: every
/// open span is cut where the gap begins, because an earlier end would have been recorded, and is extended
/// only when its own end arrives. A begin that cannot nest in an open span (a new step, a second phase, a
/// module outside its ancestors) proves that the open one has ended; it then stays cut. The same holds for a
/// span whose end after the gap may belong to a later span with the same ids (a module runs again in every
/// step). An end whose begin is missing makes no span, because its begin time is unknown; it is counted,
/// see [Note: ends whose begin is missing].
class Lane {
 public:
  static constexpr std::int64_t kNever = INT64_MIN;
  static constexpr std::size_t kMaxDepth = 64;  ///< nested spans; one more ends all open ones

  /// A span that has not ended, by depth.
  struct Open {
    Span span;
    std::int64_t certain_ns =
        kNever;  ///< last instant before a gap at which it was open; kNever: no gap since
  };
  /// State from which a lane can continue, without the spans that have ended.
  struct Keyframe {
    std::int64_t last_ns = kNever;
    std::vector<Open> open;  ///< by depth
  };

  Lane() = default;
  enum class Detail : std::uint8_t { spans, levels };
  /// Continues another lane. Its open spans become the first of their depths. With Detail::spans
  /// density() reads every span.
  Lane(const Keyframe& from, Detail detail);
  [[nodiscard]] Keyframe keyframe() const;

  /// `parents`: parent module by module id, for the nesting proof above; may be empty. Not owned.
  void begin(const ev::Event& event, std::int64_t at_ns, const std::vector<std::uint32_t>& parents);
  /// Returns the span that ended, or null when its begin is missing. Valid until the next call.
  const Span* end(const ev::Event& event, std::int64_t at_ns);
  /// For an end for which end() returned null: whether the begin can be among missing events.
  [[nodiscard]] bool explains(const ev::Event& end, std::int64_t at_ns);
  /// A step that began at `begin_ns` has ended: spans that began before it have ended too.
  void step_received(std::int64_t begin_ns) noexcept { missing_begins_.step_received(begin_ns); }
  /// collective_entered: every rank has arrived.
  void mark(const ev::Event& event, std::int64_t at_ns);
  /// Events between `from_ns` and `until_ns` are missing; kNever: since the latest event, up to the next one.
  void gap(std::int64_t from_ns = kNever, std::int64_t until_ns = kNever);
  /// Some events of kinds above `low` were not emitted before `at_ns`.
  void gap_of_detail(ev::Detail low, std::int64_t at_ns);
  /// Includes events since the last call in the levels of detail of density().
  void settle();
  /// Expected length of the block that begins, as a hint for the levels of detail.
  void expect(std::int64_t ns) noexcept { expected_ns_ = ns; }
  /// Disables levels of detail; density() stays empty. Call before the first event.
  void without_density() noexcept { with_density_ = false; }
  /// Ends the block: adds open spans, as far as they are known, to the levels of detail.
  void close_stretch();
  /// Moves every closed span to `sink` and clears the levels of detail; open spans stay.
  template <typename Sink>
  void begin_next_stretch(Sink sink) {
    for (std::size_t d = 0; d < rows_.size(); ++d) {
      std::vector<Span>& spans = rows_[d].spans;
      const auto closed = spans.end() - (d < open_.size() ? 1 : 0);
      for (auto span = spans.begin(); span != closed; ++span) sink(*span);
      spans.erase(spans.begin(), closed);
      rows_[d].carried = d < open_.size();
      rows_[d].pyramid.clear();
    }
    waits_.clear();
    from_ns_ = last_ns_;
    expected_ns_ = 0;
  }

  /// Frees the memory of the spans that begin_next_stretch() moved out.
  void shrink() {
    for (Row& row : rows_) row.spans.shrink_to_fit();
  }

  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  [[nodiscard]] std::uint8_t depth_count() const noexcept { return static_cast<std::uint8_t>(rows_.size()); }
  [[nodiscard]] std::span<const Span> spans(std::uint8_t depth) const;
  [[nodiscard]] std::size_t open_count() const noexcept { return open_.size(); }
  /// Whether the first span of this depth began in an earlier block.
  [[nodiscard]] bool carried(std::size_t depth) const noexcept {
    return depth < rows_.size() && rows_[depth].carried;
  }
  [[nodiscard]] std::int64_t from_ns() const noexcept { return from_ns_; }  ///< begin of this block
  [[nodiscard]] std::int64_t last_ns() const noexcept { return last_ns_; }  ///< latest event
  /// Index range of the spans of a depth that overlap [begin, end).
  [[nodiscard]] std::pair<std::size_t, std::size_t> visible(std::uint8_t depth, std::int64_t begin_ns,
                                                            std::int64_t end_ns) const;
  /// Adds one depth's spans in this block to `columns`: up to the latest event, and to `now_ns` for open
  /// spans.
  void density(std::uint8_t depth, std::int64_t now_ns, const DensityColumns& columns) const;
  /// The same for the waits of every depth.
  void density_of_waits(std::int64_t now_ns, const DensityColumns& columns) const;
  [[nodiscard]] const DensityPyramid& pyramid(std::uint8_t depth) const { return rows_[depth].pyramid; }
  /// Levels of detail of the waits of every depth.
  [[nodiscard]] const DensityPyramid& waits() const noexcept { return waits_; }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  struct Row {
    std::vector<Span> spans;
    DensityPyramid pyramid;  ///< of all spans but an open last one
    std::int64_t last_end_ns = kNever;
    bool carried = false;
  };
  struct OpenRef {
    ev::EventKind kind{};
    std::uint8_t code = 0;
    std::uint32_t a = 0, b = 0;
    std::int64_t certain_ns = kNever;
  };

  Span& open_span(std::size_t depth) { return rows_[depth].spans.back(); }
  void close(std::int64_t end_ns);    ///< the innermost open span
  void cut_above(std::size_t depth);  ///< closes spans open at `depth` and deeper, whose ends are missing
  void add_density(Row& row, const Span& span, std::int64_t until_ns);
  /// The end of an open span may be missing from `from_ns` on.
  void make_uncertain(std::size_t depth, std::int64_t from_ns);

  std::vector<Row> rows_;      ///< by depth
  std::vector<OpenRef> open_;  ///< by depth; the span is the last of its row
  DensityPyramid waits_;
  [[no_unique_address]] MissingBegins
      missing_begins_;  // the next member uses its padding: a rank has many lanes
  bool with_density_ = true;
  std::int64_t last_ns_ = kNever, from_ns_ = kNever;
  std::int64_t expected_ns_ = 0;  ///< length of the block; 0: unknown
};

/// Computation waits: for communication, for ZenFlow's update or for data.
[[nodiscard]] constexpr bool is_wait(ev::EventKind begin) noexcept {
  return ev::is_begin(begin) && ev::role_of(begin) == ev::EventRole::wait;
}

}  // namespace shardscope::store
