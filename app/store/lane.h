// One lane: begin and end events become spans, row by row of nesting depth.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "app/store/density_pyramid.h"
#include "app/store/store.h"

namespace shardscope::store {

/// [Note: spans with a missing end or begin]
/// After a drop an end may never come. A span is never shown longer than it is known to have lasted: at
/// the gap every open span is cut at the lane's last event before it, and grows again only if its own end
/// arrives. A begin that cannot nest in an open span (a new step, a second phase, a module outside its
/// ancestors) proves that the open one is over; it then stays cut. So does one whose end, heard after the
/// gap, may be that of a later span with the same ids (a module runs again in every step). An end whose begin
/// is missing makes no span, because where it began is not known.
class Lane {
 public:
  /// `parents`: parent module by module id, for the nesting proof above; may be empty. Not owned.
  void begin(const ev::Event& event, std::int64_t at_ns, const std::vector<std::uint32_t>& parents);
  /// Returns the span that ended, or null when its begin is missing. Valid until the next call.
  const Span* end(const ev::Event& event, std::int64_t at_ns);
  /// collective_entered: every rank has arrived.
  void mark(const ev::Event& event, std::int64_t at_ns);
  /// Events before now are missing.
  void gap();
  /// Makes density() see what came since the last call.
  void settle();
  void shift(std::int64_t delta_ns);  ///< the run's origin moved
  /// Keeps no levels of detail; density() stays empty. Before the first event.
  void without_density() noexcept { with_density_ = false; }
  /// Hands every closed span to `heir` and forgets it; open spans stay.
  template <typename Heir>
  void let_go(Heir heir) {
    for (std::size_t d = 0; d < rows_.size(); ++d) {
      std::vector<Span>& spans = rows_[d].spans;
      const auto closed = spans.end() - (d < open_.size() ? 1 : 0);
      for (auto span = spans.begin(); span != closed; ++span) heir(*span);
      spans.erase(spans.begin(), closed);
    }
  }

  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  [[nodiscard]] std::uint8_t depth_count() const noexcept { return static_cast<std::uint8_t>(rows_.size()); }
  [[nodiscard]] std::span<const Span> spans(std::uint8_t depth) const;
  /// Index range of the spans of a depth that overlap [begin, end).
  [[nodiscard]] std::pair<std::size_t, std::size_t> visible(std::uint8_t depth, std::int64_t begin_ns,
                                                            std::int64_t end_ns) const;
  /// `now_ns`: how far an open span reaches.
  void density(std::uint8_t depth, std::int64_t begin_ns, std::int64_t end_ns, std::int64_t now_ns,
               std::span<Density> columns) const;
  [[nodiscard]] std::uint64_t cut_spans() const noexcept { return cut_; }
  [[nodiscard]] std::uint64_t unmatched_ends() const noexcept { return unmatched_; }

 private:
  struct Row {
    std::vector<Span> spans;
    DensityPyramid pyramid;  ///< of all spans but an open last one
    std::int64_t last_end_ns = 0;
  };
  struct Open {
    ev::EventKind kind{};
    std::uint8_t code = 0;
    std::uint32_t a = 0, b = 0;
    std::int64_t certain_ns = -1;  ///< last instant before a gap at which it was open; -1: no gap since
  };

  Span& open_span(std::size_t depth) { return rows_[depth].spans.back(); }
  void close(std::int64_t end_ns);    ///< the innermost open span
  void cut_above(std::size_t depth);  ///< ends of the spans open at `depth` and deeper are lost

  std::vector<Row> rows_;   ///< by depth
  std::vector<Open> open_;  ///< by depth; the span is the last of its row
  std::int64_t last_ns_ = 0;
  bool with_density_ = true;
  std::uint64_t cut_ = 0, unmatched_ = 0;
};

}  // namespace shardscope::store
