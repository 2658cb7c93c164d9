// Where the time of a range went, as a tree: spans of the compute stream by what they lie in, or work of the
// GPU's streams by stream and by whom it was launched for; the same ones merged, over all ranks and for each.
// Counted piece by piece, as a range may hold millions of spans.
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

/// compute: the compute stream as the host sees it. gpu: what the GPU itself recorded, in three levels: its
/// stream, the module or other owner that launched the work, the kernel or copy.
enum class FlameOf : std::uint8_t { compute, gpu };

struct FlameQuery {
  TimeRange range;             ///< spans are cut at its ends
  std::uint64_t revision = 0;  ///< of the store: of a live run there is more at another
  FlameOf of = FlameOf::compute;
  std::size_t most_nodes = 20'000;
  friend bool operator==(const FlameQuery&, const FlameQuery&) = default;
};

/// All spans of one name that lie in the same ones. Times are within the range, pauses cut out.
struct FlameNode {
  std::uint32_t parent = ev::kNoId;  ///< kNoId: the root, which stands for all spans
  std::uint32_t name = 0;            ///< FlameTree::name()
  ev::EventKind kind{};              ///< of the root and of a stream of the GPU: no event's
  std::uint8_t code = 0;
  std::uint32_t module = ev::kNoId;
  std::uint64_t count = 0;     ///< spans, those that reach out of the range included
  std::int64_t total_ns = 0;   ///< sum over ranks
  std::int64_t inside_ns = 0;  ///< of it, in nodes below
  std::int64_t longest_ns = 0;
  store::LaneId lane;  ///< of the longest span
  store::Span longest;
  /// Begin of the first span that does not reach into the range from before; INT64_MAX: there is none.
  std::int64_t first_ns = INT64_MAX;
  std::vector<std::uint32_t> children;  ///< by first_ns: a range that begins in a backward has it last
  [[nodiscard]] std::int64_t self_ns() const noexcept { return total_ns - inside_ns; }
};

class FlameTree {
 public:
  void start(const store::Store& store, const FlameQuery& query);
  /// Works for about `time`, and on one piece at least. False when there was nothing to do.
  bool advance(const store::Store& store, std::chrono::nanoseconds time);
  [[nodiscard]] bool done() const noexcept { return begun_ && at_ == pieces_.size(); }
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  /// 0 to 1.
  [[nodiscard]] double progress() const noexcept;
  [[nodiscard]] const FlameQuery& query() const noexcept { return query_; }
  /// There are more nodes than are kept: those are counted as their parents' own time.
  [[nodiscard]] bool cut_short() const noexcept { return cut_short_; }

  /// The first one is the root. Parents stand before their children.
  [[nodiscard]] const std::vector<FlameNode>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::vector<std::uint32_t>& ranks() const noexcept { return ranks_; }
  [[nodiscard]] const std::string& name(std::uint32_t node) const { return names_[nodes_[node].name]; }
  /// Of the rank with this index into ranks().
  [[nodiscard]] std::int64_t total_of(std::uint32_t node, std::size_t rank) const {
    return of_rank_[node * ranks_.size() + rank];
  }
  [[nodiscard]] std::int64_t self_of(std::uint32_t node, std::size_t rank) const;
  /// Names from below the root to the node: what finds it again in another tree.
  [[nodiscard]] std::vector<std::string> path(std::uint32_t node) const;
  /// The node with this path; where it is not there, the deepest one on the way to it.
  [[nodiscard]] std::uint32_t at_path(const std::vector<std::string>& path) const;

 private:
  struct Piece {
    std::size_t rank = 0;  ///< index into ranks()
    ev::StreamId stream{};
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  struct Open {
    std::int64_t end_ns = 0;
    std::uint32_t node = 0;  ///< kNoId: it and all in it are counted as own time of what it lies in
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
  /// The node of this name in `parent`; made from `like` where there is none; kNoId: there are too many.
  std::uint32_t child(std::uint32_t parent, std::uint32_t name, const FlameNode& like);
  std::uint32_t id_of(const std::string& name);
  std::uint32_t name_id(const store::Store& store, std::uint32_t rank, const store::Span& span);

  FlameQuery query_;
  bool begun_ = false, cut_short_ = false;
  std::vector<Piece> pieces_;
  std::size_t at_ = 0;
  std::vector<FlameNode> nodes_;
  std::vector<std::uint32_t> ranks_;
  std::vector<std::int64_t> of_rank_;  ///< total by node and rank
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;     ///< name by kind, code and module
  std::unordered_map<std::uint64_t, std::uint32_t> child_of_;  ///< by parent and name
  std::vector<store::Span> spans_;                             ///< of the piece that is counted
};

/// A box of the picture. Its place is in nanoseconds of the top node's time.
struct FlameFrame {
  std::uint32_t node = 0;
  std::uint32_t level = 0;  ///< 0: the top node
  std::int64_t begin_ns = 0, width_ns = 0;
  std::uint32_t folded = 0;  ///< this many neighbours, the first of them `node`, each too narrow to be seen
};
/// The top node and what is below it, `levels` of them. Without a rank: sums over ranks. Neighbours narrower
/// than `least_ns` are one box.
[[nodiscard]] std::vector<FlameFrame> flame_frames(const FlameTree& tree, std::uint32_t top,
                                                   std::optional<std::size_t> rank, std::uint32_t levels,
                                                   std::int64_t least_ns);
/// How many levels there are, the top node's included.
[[nodiscard]] std::uint32_t flame_levels(const FlameTree& tree, std::uint32_t top);

/// Whether any rank has records of its GPU.
[[nodiscard]] bool has_gpu_streams(const store::Store& store);
/// The stream whose time the node is: "compute", or one of the GPU's.
[[nodiscard]] std::string_view flame_stream(const FlameTree& tree, std::uint32_t node);
/// Whether Find's words find a node of this name, on this stream.
[[nodiscard]] bool flame_finds(std::string_view words, std::string_view name, std::string_view stream);
/// Time of the nodes under `top` that are found, sums over ranks; what lies in another one is not counted
/// twice.
[[nodiscard]] std::int64_t found_ns(const FlameTree& tree, std::uint32_t top, std::string_view words);

/// A line a node as programs that draw flame graphs read it: names from the root on with semicolons between
/// them, and the node's own time in nanoseconds, sum over ranks.
[[nodiscard]] std::string folded_stacks(const FlameTree& tree);

}  // namespace shardscope::gui
