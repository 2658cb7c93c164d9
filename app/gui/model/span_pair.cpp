#include "app/gui/model/span_pair.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "app/analysis/spans.h"
#include "app/gui/model/find_spans.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "app/store/lane.h"
#include "app/store/span_time.h"

namespace shardscope::gui {
namespace {

/// What equal work has in common: text, and elements of a collective.
using WorkKey = std::tuple<std::string, std::int64_t>;

WorkKey work_key(const StepSide& side, const store::Span& span) {
  if (span.kind == ev::EventKind::collective_begin) {
    const auto fields = ev::as<ev::EventKind::collective_begin>(span);
    return {std::string(word(fields.op)) + " " + (fields.code.known() ? word(fields.code.scope()) : ""),
            fields.elems};
  }
  std::string name = shared_name(side.store, side.rank, span);
  // The name of all waits for parameters is the same.
  if (const std::uint32_t module = module_of(span); module != ev::kNoId && store::is_wait(span.kind))
    name += " " + module_name(side.store, module);
  return {std::move(name), 0};
}

std::string name_of_work(const StepSide& side, const store::Span& span) {
  if (span.kind == ev::EventKind::collective_begin) {
    const auto fields = ev::as<ev::EventKind::collective_begin>(span);
    return std::string(word(fields.op)) + " of " + count(static_cast<double>(fields.elems)).text() +
           " elements";
  }
  return store::is_wait(span.kind) ? label_of(side.store, side.rank, span)
                                   : shared_name(side.store, side.rank, span);
}

/// The spans of the step that do this work, in order of begin.
std::vector<store::Span> equal_work(const StepSide& side, ev::StreamId stream, const store::Span& like,
                                    const WorkKey& key) {
  std::vector<store::Span> out;
  analysis::for_each_span(side.store, {side.rank, stream}, side.step.begin_ns, side.step.end_ns,
                          [&](const store::Span& span) {
                            if (span.kind != like.kind || span.begin_ns < side.step.begin_ns) return;
                            // The code is the pass of a module, the operation of a collective.
                            if (span.code == like.code && work_key(side, span) == key) out.push_back(span);
                          });
  std::ranges::stable_sort(out, {}, &store::Span::begin_ns);
  return out;
}

std::string percent_text(double change) {
  return decimal(std::fabs(change), std::fabs(change) < 10 ? 1 : 0) + " %";
}

}  // namespace

SpanPair pair_of(const StepSide& own, const StepSide& other, ev::StreamId stream, const store::Span& span) {
  const WorkKey key = work_key(own, span);
  const std::vector<store::Span> mine = equal_work(own, stream, span, key);
  const std::vector<store::Span> theirs = equal_work(other, stream, span, key);
  SpanPair out;
  out.name = name_of_work(own, span);
  out.count = {mine.size(), theirs.size()};
  out.own_ns = store::time_of(own.store, own.rank, span).running_ns;
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (mine[i].begin_ns == span.begin_ns && mine[i].depth == span.depth) out.place = i;
  if (out.place < theirs.size())
    out.other_ns = store::time_of(other.store, other.rank, theirs[out.place]).running_ns;
  return out;
}

std::string difference_text(std::int64_t a_ns, std::int64_t b_ns) {
  const std::int64_t difference = b_ns - a_ns;
  const std::string sign = difference > 0 ? "+" : difference < 0 ? "\u2212" : "";
  std::string text = sign + duration(std::abs(difference)).text();
  if (a_ns > 0)
    text += ", " + sign + percent_text(100 * static_cast<double>(difference) / static_cast<double>(a_ns));
  return text;
}

Details pair_details(const SpanPair& pair, std::uint32_t rank, bool of_b) {
  Details out;
  out.title = pair.name;
  out.subtitle = std::string("of ") + (of_b ? "B" : "A") + ", rank " + std::to_string(rank);
  const auto field = [&](const char* label, std::optional<std::int64_t> ns) {
    out.fields.push_back({label, ns ? duration(*ns).text() : std::string(kMissing), "", ""});
  };
  const std::optional<std::int64_t> own = pair.own_ns;
  const auto& a = of_b ? pair.other_ns : own;
  const auto& b = of_b ? own : pair.other_ns;
  field("A", a);
  field("B", b);
  if (a && b) out.fields.push_back({"B \u2212 A", difference_text(*a, *b), "", ""});
  const auto& [mine, theirs] = pair.count;
  const std::string of_other = of_b ? "A" : "B";
  if (theirs == 0)
    out.reason = of_other + " has none in this step.";
  else if (mine != theirs)
    out.reason = "In this step A has " + std::to_string(of_b ? theirs : mine) + " of them and B " +
                 std::to_string(of_b ? mine : theirs) + ": paired in order, this is number " +
                 std::to_string(pair.place + 1) + ".";
  else if (mine > 1)
    out.reason = "Number " + std::to_string(pair.place + 1) + " of " + std::to_string(mine) +
                 " in this step, paired with the same number.";
  return out;
}

}  // namespace shardscope::gui
