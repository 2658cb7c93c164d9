// Spans by words in their names, over a range of time: a search that does a bounded amount of work at a call,
// so that a window stays quick while millions of spans are gone through.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

struct SpanQuery {
  /// Every word is in the name, whatever its case. In quotation marks: the whole name is this.
  std::string words;
  /// Spans that overlap [begin, end), each with its whole time.
  std::int64_t begin_ns = store::Store::kBegin, end_ns = store::Store::kEnd;
  /// Hits that are kept at most, so that memory stays bounded.
  std::size_t most = 2'000'000;
  friend bool operator==(const SpanQuery&, const SpanQuery&) = default;
};

struct SpanHit {
  std::int64_t begin_ns = 0;
  std::int64_t time_ns = 0;  ///< pauses cut out; of one that has not ended, so far
  std::int64_t self_ns = 0;  ///< without its children, the spans directly inside it on its lane
  std::uint32_t name = 0;    ///< of SpanSearch::name()
  std::uint32_t module = ev::kNoId;
  std::uint32_t step = ev::kNoId;
  std::uint32_t within = ev::kNoId;  ///< name of the span that it lies directly in, on its lane
  std::uint8_t depth = 0;
  bool parent = false;  ///< it has children
  bool wait = false;
};

class SpanSearch {
 public:
  struct Lane {
    store::LaneId id;
    std::vector<SpanHit> hits;  ///< by begin, then depth
    std::size_t settled = 0;    ///< hits from the first on whose self time will not change any more
  };

  void start(SpanQuery query);
  /// Works for about `time`, and on one part of a lane at least. False when there was nothing to do. A
  /// caller that holds indexes into lanes() or names checks outdated() first and starts anew.
  bool advance(const store::Store& store, std::chrono::nanoseconds time);
  [[nodiscard]] const SpanQuery& query() const noexcept { return query_; }
  [[nodiscard]] bool done() const noexcept { return state_ == State::done; }
  /// The store's time 0 has moved since it began (Store::origin_ns): its times are of the axis before.
  [[nodiscard]] bool outdated(const store::Store& store) const;
  /// There are more hits than are kept: lanes() has those of the first ranks.
  [[nodiscard]] bool cut_short() const noexcept { return cut_short_; }
  /// How many spans were looked at, and of how many about; nothing before that is known.
  [[nodiscard]] std::uint64_t searched() const noexcept { return searched_; }
  [[nodiscard]] std::optional<std::uint64_t> total() const noexcept;
  /// What came later is not in it.
  [[nodiscard]] std::int64_t until_ns() const noexcept { return until_ns_; }

  [[nodiscard]] std::span<const Lane> lanes() const noexcept { return lanes_; }
  [[nodiscard]] const Lane* lane(store::LaneId id) const noexcept;
  [[nodiscard]] std::size_t hits() const noexcept { return hits_; }
  [[nodiscard]] const std::string& name(std::uint32_t id) const { return names_[id]; }

 private:
  enum class State : std::uint8_t { idle, planning, searching, done };
  /// A span of which a later part of the lane holds children.
  struct Carried {
    std::int64_t begin_ns = 0, end_ns = store::Store::kBegin;
    std::size_t hit = SIZE_MAX;
    std::uint32_t name = ev::kNoId;
  };
  struct Cursor {
    std::size_t lane = 0;
    std::vector<std::int64_t> bounds;  ///< of its parts, ascending
    std::size_t next = 0;              ///< part
    std::vector<Carried> carried;      ///< by depth
    [[nodiscard]] bool done() const noexcept { return next + 1 >= bounds.size(); }
  };
  struct Key {
    std::uint64_t kind = 0;  ///< kind, code and stream; rank where names are a rank's own
    std::uint32_t a = 0, b = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  /// What is known of all spans with a key.
  struct Known {
    std::uint32_t name = 0, module = ev::kNoId;
    bool matches = false;
    bool numbered = false;  ///< each has a number of its own in its label, which words may ask for
  };
  struct Row {
    std::vector<store::Span> spans;
    std::vector<std::size_t> hit;  ///< in the lane's hits, or SIZE_MAX
  };

  void plan(const store::Store& store, store::LaneId id);
  void search_part(const store::Store& store, Cursor& cursor);
  [[nodiscard]] Cursor* next_cursor();
  const Known& known(const store::Store& store, store::LaneId lane, const store::Span& span);
  [[nodiscard]] bool matches_label(const store::Store& store, store::LaneId lane,
                                   const store::Span& span) const;
  void collect_hits(const store::Store& store, Lane& lane);
  void relate_to_parents(const store::Store& store, Lane& lane, Cursor& cursor);

  SpanQuery query_;
  State state_ = State::idle;
  bool cut_short_ = false;
  std::int64_t origin_ns_ = 0, until_ns_ = 0;
  std::uint64_t searched_ = 0, total_ = 0;
  std::size_t hits_ = 0;
  std::vector<store::LaneId> to_plan_;
  std::vector<Lane> lanes_;
  std::vector<Cursor> cursors_;  ///< by lane
  std::size_t first_cursor_ = 0;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> name_ids_;
  std::unordered_map<Key, Known, KeyHash> known_;
  std::vector<Row> rows_;  ///< of the part that is searched, by depth
};

/// The name that spans alike share: "h.3.attn forward", "all-gather", "waits for parameters".
[[nodiscard]] std::string shared_name(const store::Store& store, std::uint32_t rank, const store::Span& span);
/// The module that a span is of, or kNoId.
[[nodiscard]] std::uint32_t module_of(const store::Span& span) noexcept;

}  // namespace shardscope::gui
