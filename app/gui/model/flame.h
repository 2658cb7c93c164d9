// Where the time of a range went, as a tree: compute spans by nesting, or GPU work by stream and by the
// module that launched it. Equal paths are merged, over all ranks and per rank. Built piece by piece, as a
// range may contain millions of spans.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/gui/model/time_axis.h"
#include "app/store/store.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

/// compute: the compute stream as recorded by the host. gpu: GPU records, in three levels: the stream, the
/// module or other owner that launched the work, the kernel or copy.
enum class FlameOf : std::uint8_t { compute, gpu };

struct FlameQuery {
  TimeRange range;             ///< spans are clipped to it
  std::uint64_t revision = 0;  ///< of the store; a live run's grows
  FlameOf of = FlameOf::compute;
  std::size_t most_nodes = 20'000;
  friend bool operator==(const FlameQuery&, const FlameQuery&) = default;
};

/// All spans with the same path of names. Times are within the range, without pauses.
struct FlameNode {
  std::uint32_t parent = ev::kNoId;  ///< kNoId: the root, which covers all spans
  std::uint32_t name = 0;            ///< FlameTree::name()
  ev::EventKind kind{};              ///< unset for the root and for GPU streams
  std::uint8_t code = 0;
  std::uint32_t module = ev::kNoId;
  std::uint64_t count = 0;     ///< number of spans, including those clipped by the range
  std::int64_t total_ns = 0;   ///< sum over ranks
  std::int64_t inside_ns = 0;  ///< part of total_ns that is in child nodes
  std::int64_t longest_ns = 0;
  store::LaneId lane;  ///< of the longest span
  store::Span longest;
  /// Begin of the first span that begins within the range; INT64_MAX without one.
  std::int64_t first_ns = INT64_MAX;
  std::vector<std::uint32_t> children;  ///< by first_ns: a backward cut by the range's begin is last
  [[nodiscard]] std::int64_t self_ns() const noexcept { return total_ns - inside_ns; }
};

class FlameTree {
 public:
  void start(const store::Store& store, const FlameQuery& query);
  /// Works for about `time`, at least on one piece. False when there was nothing to do.
  bool advance(const store::Store& store, std::chrono::nanoseconds time);
  [[nodiscard]] bool done() const noexcept { return begun_ && at_ == pieces_.size(); }
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  /// Fraction done, 0 to 1.
  [[nodiscard]] double progress() const noexcept;
  [[nodiscard]] const FlameQuery& query() const noexcept { return query_; }
  /// The limit most_nodes was reached: further nodes are counted as self time of their parents.
  [[nodiscard]] bool cut_short() const noexcept { return cut_short_; }

  /// Element 0 is the root. Parents precede their children.
  [[nodiscard]] const std::vector<FlameNode>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::vector<std::uint32_t>& ranks() const noexcept { return ranks_; }
  [[nodiscard]] const std::string& name(std::uint32_t node) const { return names_[nodes_[node].name]; }
  /// `rank` is an index into ranks().
  [[nodiscard]] std::int64_t total_of(std::uint32_t node, std::size_t rank) const {
    return of_rank_[node * ranks_.size() + rank];
  }
  [[nodiscard]] std::int64_t self_of(std::uint32_t node, std::size_t rank) const;
  /// Names from below the root to the node: identifies it in another tree.
  [[nodiscard]] std::vector<std::string> path(std::uint32_t node) const;
  /// The node with this path, or its deepest ancestor that exists.
  [[nodiscard]] std::uint32_t at_path(const std::vector<std::string>& path) const;

 private:
  struct Piece {
    std::size_t rank = 0;  ///< index into ranks()
    ev::StreamId stream{};
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  struct Open {
    std::int64_t end_ns = 0;
    std::uint32_t node = 0;  ///< kNoId: it and its children count as self time of the enclosing node
  };
  void add_pieces(const store::Store& store, store::LaneId lane, std::size_t rank);
  void count(const store::Store& store, const Piece& piece);
  void count_gpu(const store::Store& store, const Piece& piece);
  [[nodiscard]] std::int64_t time_in(const store::Store& store, const Piece& piece, const store::Span& span,
                                     bool paused) const;
  void add(const store::Store& store, const Piece& piece, const store::Span& span, std::int64_t ns,
           std::uint32_t node);
  void order_children();
  void keep_longest(const store::Store& store, store::LaneId lane, const store::Span& span,
                    FlameNode& node) const;
  /// The child of `parent` with this name, created as a copy of `like` if missing; kNoId: limit reached.
  std::uint32_t child(std::uint32_t parent, std::uint32_t name, const FlameNode& like);
  std::uint32_t id_of(const std::string& name);
  std::uint32_t name_id(const store::Store& store, std::uint32_t rank, const store::Span& span);

  FlameQuery query_;
  bool begun_ = false, cut_short_ = false;
  std::vector<Piece> pieces_;
  std::size_t at_ = 0;
  std::vector<FlameNode> nodes_;
  std::vector<std::uint32_t> ranks_;
  std::vector<std::int64_t> of_rank_;  ///< total_ns by node and rank
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;     ///< name id by kind, code and module
  std::unordered_map<std::uint64_t, std::uint32_t> child_of_;  ///< node by parent and name id
  std::vector<store::Span> spans_;                             ///< spans of the current piece
};

/// A box of the flame graph, in nanoseconds relative to the top node.
struct FlameFrame {
  std::uint32_t node = 0;
  std::uint32_t level = 0;  ///< 0: the top node
  std::int64_t begin_ns = 0, width_ns = 0;
  std::uint32_t folded = 0;  ///< number of narrow neighbours merged into this box, `node` being the first
};
/// Boxes of the top node and `levels` levels below it. Without `rank`: sums over ranks. Neighbours narrower
/// than `least_ns` are merged into one box.
[[nodiscard]] std::vector<FlameFrame> flame_frames(const FlameTree& tree, std::uint32_t top,
                                                   std::optional<std::size_t> rank, std::uint32_t levels,
                                                   std::int64_t least_ns);
/// Number of levels including that of the top node.
[[nodiscard]] std::uint32_t flame_levels(const FlameTree& tree, std::uint32_t top);

/// Whether any rank has GPU records.
[[nodiscard]] bool has_gpu_streams(const store::Store& store);
/// The stream of a node: "compute", or a GPU stream.
[[nodiscard]] std::string_view flame_stream(const FlameTree& tree, std::uint32_t node);
/// Whether the search words match a node with this name on this stream.
[[nodiscard]] bool flame_finds(std::string_view words, std::string_view name, std::string_view stream);
/// Total time of the matching nodes under `top`, summed over ranks; matches nested in another match count
/// once.
[[nodiscard]] std::int64_t found_ns(const FlameTree& tree, std::uint32_t top, std::string_view words);

/// Folded stacks as flame graph tools read them: one line per node with the names from the root, separated by
/// semicolons, and its self time in nanoseconds, summed over ranks.
[[nodiscard]] std::string folded_stacks(const FlameTree& tree);

}  // namespace shardscope::gui
