#include "app/gui/model/flame_text.h"

#include <algorithm>
#include <string_view>

#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {
namespace {

constexpr const char* kClick = "Click to zoom to it and select its longest span in the timeline";

std::string length(std::int64_t ns) { return duration(ns).text(); }

std::string share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? decimal(100 * static_cast<double>(part) / static_cast<double>(whole), 1)
                   : std::string(kMissing);
}

std::int64_t mean(std::int64_t sum, std::size_t ranks) {
  return ranks == 0 ? 0 : sum / static_cast<std::int64_t>(ranks);
}

void longest_rank(const FlameTree& tree, std::uint32_t node, std::vector<Field>& fields) {
  const std::size_t ranks = tree.ranks().size();
  if (ranks < 2) return;
  std::size_t most = 0, least = 0;
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    if (tree.total_of(node, rank) > tree.total_of(node, most)) most = rank;
    if (tree.total_of(node, rank) < tree.total_of(node, least)) least = rank;
  }
  const auto text = [&](std::size_t rank) {
    return "rank " + std::to_string(tree.ranks()[rank]) + ", " + length(tree.total_of(node, rank));
  };
  fields.push_back({"longest on", text(most), "", ""});
  fields.push_back({"shortest on", text(least), "", ""});
}

}  // namespace

std::string FlameTimes::total_text() const { return length(total_ns); }

std::string FlameTimes::text() const {
  return has_inside && self_ns > 0 ? total_text() + ", self " + length(self_ns) : total_text();
}

FlameTimes flame_times(const FlameTree& tree, std::uint32_t node, std::optional<std::size_t> rank) {
  const FlameNode& of = tree.nodes()[node];
  FlameTimes out;
  out.total_ns = rank ? tree.total_of(node, *rank) : mean(of.total_ns, tree.ranks().size());
  out.self_ns = rank ? tree.self_of(node, *rank) : mean(of.self_ns(), tree.ranks().size());
  out.has_inside = !of.children.empty();
  return out;
}

std::string flame_label(const FlameTree& tree, std::uint32_t node, std::size_t most_chars) {
  const FlameNode& of = tree.nodes()[node];
  std::string name = tree.name(node);
  if (of.kind != ev::EventKind::module_begin) return name;
  const std::string pass = word(ev::as<ev::EventKind::module_begin>(of.longest).pass);
  std::string after = " " + pass;
  const auto path_of = [](const std::string& text) {
    return std::string_view(text).substr(0, text.rfind(' '));
  };
  std::string path(path_of(name));
  bool named = false;  // an enclosing node names the pass
  bool within = false;
  for (std::uint32_t at = of.parent; at != ev::kNoId; at = tree.nodes()[at].parent) {
    const std::string& around = tree.name(at);
    const bool module = tree.nodes()[at].kind == ev::EventKind::module_begin;
    named = named || around == pass || (module && around.ends_with(after));
    if (!module || within) continue;
    // Omit the path of the innermost enclosing module.
    within = true;
    const std::string outer = std::string(path_of(around)) + ".";
    if (path.starts_with(outer)) path.erase(0, outer.size());
  }
  if (named) after.clear();
  const std::size_t room = most_chars > after.size() ? most_chars - after.size() : 1;
  return std::string(short_path(within ? std::string_view(path) : tail_path(path), room)) + after;
}

Details flame_details(const FlameTree& tree, std::uint32_t top, const FlamePlace& place) {
  Details out;
  const FlameNode& node = tree.nodes()[place.node];
  const std::string who = place.rank ? "rank " + std::to_string(tree.ranks()[*place.rank])
                          : tree.ranks().size() > 1
                              ? "mean of " + std::to_string(tree.ranks().size()) + " ranks"
                              : "rank " + std::to_string(tree.ranks().front());
  if (place.folded > 0) {
    out.title = std::to_string(place.folded) + (place.folded == 1 ? " box" : " boxes");
    out.subtitle = "each too narrow to be seen; the first is " + tree.name(place.node);
    const std::int64_t ns = place.rank ? place.folded_ns : mean(place.folded_ns, tree.ranks().size());
    out.fields.push_back({"time, " + who, length(ns), "", ""});
    return out;
  }
  out.title = tree.name(place.node);
  out.meaning = meaning_of(node.kind, node.code);
  const FlameTimes times = flame_times(tree, place.node, place.rank);
  out.fields.push_back({"time, " + who, times.total_text(), "", ""});
  out.fields.push_back({"self", length(times.self_ns), "", ""});
  const auto total = [&](std::uint32_t one) {
    return place.rank ? tree.total_of(one, *place.rank) : tree.nodes()[one].total_ns;
  };
  if (node.parent != ev::kNoId && node.parent != 0)
    out.fields.push_back({"of its parent", share(total(place.node), total(node.parent)), "%", ""});
  if (place.node != 0) out.fields.push_back({"of all spans", share(total(place.node), total(0)), "%", ""});
  if (place.node != 0 && place.node != top && node.parent != top && top != 0)
    out.fields.push_back({"of " + flame_label(tree, top, 24), share(total(place.node), total(top)), "%", ""});
  if (place.node != 0) {
    out.fields.push_back({"spans, all ranks", grouped(static_cast<std::int64_t>(node.count)), "", ""});
    out.fields.push_back({"the longest", length(node.longest_ns), "", ""});
  }
  longest_rank(tree, place.node, out.fields);
  const bool gpu = tree.query().of == FlameOf::gpu;
  if (gpu && node.parent == 0) out.meaning = Meaning::neutral;
  out.reason =
      place.node != 0 ? kClick
      : gpu ? "What the GPU's streams did in the range, by their own records: streams run at the same time, "
              "so their sum may be longer than the range. Click: all of it"
            : "Spans of the compute stream in the range, pauses cut out. Click: all of it";
  return out;
}

}  // namespace shardscope::gui
