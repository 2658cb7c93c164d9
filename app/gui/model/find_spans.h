// Search for spans by words in their names within a time range. Each call does a bounded amount of work, so
// that the window stays responsive while millions of spans are searched.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/gui/model/run_index.h"
#include "app/store/store.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

struct SpanQuery {
  /// Words that the name must contain, ignoring case; of a collective the name, the module it was started
  /// for, or a parameter that it moves. In quotation marks: the whole name.
  std::string words;
  /// Includes spans that overlap [begin, end), with their full duration.
  std::int64_t begin_ns = store::Store::kBegin, end_ns = store::Store::kEnd;
  /// Upper bound on stored hits, to bound memory.
  std::size_t most = 2'000'000;
  friend bool operator==(const SpanQuery&, const SpanQuery&) = default;
};

struct SpanHit {
  std::int64_t begin_ns = 0;
  std::int64_t time_ns = 0;  ///< duration without pauses; of an open span up to now
  std::int64_t self_ns = 0;  ///< time_ns without its children, the spans directly inside it on its lane
  std::uint32_t name = 0;    ///< SpanSearch::name()
  std::uint32_t module = ev::kNoId;
  std::uint32_t step = ev::kNoId;
  std::uint32_t within = ev::kNoId;  ///< name of the enclosing span on its lane
  std::uint8_t depth = 0;
  bool parent = false;  ///< has children
  bool wait = false;
};

class SpanSearch {
 public:
  struct Lane {
    store::LaneId id;
    std::vector<SpanHit> hits;  ///< by begin, then depth
    std::size_t settled = 0;    ///< number of leading hits whose self time is final
  };

  void start(SpanQuery query);
  /// Works for about `time`, at least on one part of a lane. False when there was nothing to do. A caller
  /// that keeps indexes into lanes() or names must check outdated() first and start anew. `index`: what
  /// collectives move; null: they are known by their names only.
  bool advance(const store::Store& store, std::chrono::nanoseconds time, const RunIndex* index = nullptr);
  [[nodiscard]] const SpanQuery& query() const noexcept { return query_; }
  [[nodiscard]] bool done() const noexcept { return state_ == State::done; }
  /// The store's time 0 has moved since the start (Store::origin_ns): stored times refer to the old axis.
  [[nodiscard]] bool outdated(const store::Store& store) const;
  /// More than `most` hits: lanes() contains those of the first ranks.
  [[nodiscard]] bool cut_short() const noexcept { return cut_short_; }
  /// Number of spans searched, and the estimated total; nullopt before that is known.
  [[nodiscard]] std::uint64_t searched() const noexcept { return searched_; }
  [[nodiscard]] std::optional<std::uint64_t> total() const noexcept;
  /// Events later than this were not searched.
  [[nodiscard]] std::int64_t until_ns() const noexcept { return until_ns_; }

  [[nodiscard]] std::span<const Lane> lanes() const noexcept { return lanes_; }
  [[nodiscard]] const Lane* lane(store::LaneId id) const noexcept;
  [[nodiscard]] std::size_t hits() const noexcept { return hits_; }
  [[nodiscard]] const std::string& name(std::uint32_t id) const { return names_[id]; }

 private:
  enum class State : std::uint8_t { idle, planning, searching, done };
  /// A span with children in a later part of the lane.
  struct Carried {
    std::int64_t begin_ns = 0, end_ns = store::Store::kBegin;
    std::size_t hit = SIZE_MAX;
    std::uint32_t name = ev::kNoId;
  };
  struct Cursor {
    std::size_t lane = 0;
    std::vector<std::int64_t> bounds;  ///< borders of its parts, ascending
    std::size_t next = 0;              ///< next part to search
    std::vector<Carried> carried;      ///< by depth
    [[nodiscard]] bool done() const noexcept { return next + 1 >= bounds.size(); }
  };
  /// A word of the query, and the parameters and modules (by id) whose names contain it.
  struct Word {
    std::string text;
    bool number = false;
    std::vector<bool> params, modules;
  };
  struct Key {
    std::uint64_t kind = 0;  ///< kind, code and stream; and the rank where names are per rank
    std::uint32_t a = 0, b = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  /// Properties shared by all spans with the same key.
  struct Known {
    std::uint32_t name = 0, module = ev::kNoId;
    bool matches = false;
    bool own = false;         ///< each span has a number or contents of its own, which the words may ask for
    std::vector<bool> words;  ///< which words the shared name contains
  };
  struct Row {
    std::vector<store::Span> spans;
    std::vector<std::size_t> hit;  ///< index of the hit, or SIZE_MAX
  };

  void read_words(const store::Store& store);
  void plan(const store::Store& store, store::LaneId id);
  void search_part(const store::Store& store, Cursor& cursor, const RunIndex* index);
  [[nodiscard]] Cursor* next_cursor();
  const Known& known(const store::Store& store, store::LaneId lane, const store::Span& span);
  [[nodiscard]] bool matches_itself(const store::Store& store, store::LaneId lane, const store::Span& span,
                                    const Known& known, const RunIndex* index) const;
  void collect_hits(const store::Store& store, Lane& lane, const RunIndex* index);
  void relate_to_parents(const store::Store& store, Lane& lane, Cursor& cursor);

  SpanQuery query_;
  std::vector<Word> words_;
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
  std::vector<Row> rows_;  ///< of the current part, by depth
};

/// The name shared by spans of the same work: "h.3.attn forward", "all-gather", "waits for parameters".
[[nodiscard]] std::string shared_name(const store::Store& store, std::uint32_t rank, const store::Span& span);
/// The module a span belongs to, or kNoId.
[[nodiscard]] std::uint32_t module_of(const store::Span& span) noexcept;

}  // namespace shardscope::gui
