#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "app/analysis/flight_groups.h"

namespace shardscope::analysis {
namespace {

using What = FlightDifference::What;

// ---- one sequence number on all ranks

bool is_any_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// Whether ranks may pass different sizes, of which only the sums must match.
bool is_uneven(std::string_view name) {
  constexpr std::array<std::string_view, 3> kUneven = {"all_to_all", "all_to_all_single",
                                                       "all_to_all_v_single"};
  return is_any_of(name, kUneven);
}

/// Gathers and reductions with sizes per rank have no sizes that must match.
bool is_ragged(std::string_view name) { return is_uneven(name) || name.ends_with("_v"); }

// Only the root of a scatter has inputs, and only that of a gather outputs; inputs of the other ranks are
// ignored by broadcast and scatter.
bool compares_inputs(std::string_view name) { return name != "scatter"; }
bool compares_outputs(std::string_view name) { return name != "gather"; }
bool compares_input_types(std::string_view name) { return name != "scatter" && name != "broadcast"; }

using Signature = std::vector<std::uint64_t>;

/// The fields that must be equal on every rank, for one kind of difference.
Signature signature_of(FlightParts parts, What what, const FlightTexts& texts) {
  Signature out;
  for (const FlightEntry* one : parts) {
    const std::string& name = texts.text_of(one->name);
    if (what == What::operation) {
      out.push_back(one->name);
    } else if (what == What::sizes && !is_ragged(name)) {
      out.push_back(compares_inputs(name) ? one->input_sizes : 0);
      out.push_back(compares_outputs(name) ? one->output_sizes : 0);
    } else if (what == What::type) {
      out.push_back(compares_input_types(name) ? one->input_types : 0);
      out.push_back(compares_outputs(name) ? one->output_types : 0);
    }
  }
  return out;
}

/// Without a tensor there is no type to compare.
bool differs(const Signature& a, const Signature& b, What what) {
  if (what != What::type) return a != b;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i] && a[i] != 0 && b[i] != 0) return true;
  }
  return false;
}

struct Issued {
  std::uint32_t rank = 0;
  FlightParts parts;
};

/// The first part in which any two of them differ; the smallest number of parts if none does.
std::size_t first_unlike(const std::vector<Issued>& sides, What what, const FlightTexts& texts) {
  std::size_t shortest = SIZE_MAX;
  for (const Issued& side : sides) shortest = std::min(shortest, side.parts.size());
  for (std::size_t i = 0; i < shortest; ++i) {
    const Signature first = signature_of(sides.front().parts.subspan(i, 1), what, texts);
    for (const Issued& side : sides) {
      if (differs(first, signature_of(side.parts.subspan(i, 1), what, texts), what)) return i;
    }
  }
  return shortest;
}

/// Groups the ranks by what they issued; nullopt if all issued the same.
std::optional<FlightDifference> unlike(const std::vector<Issued>& issued, What what,
                                       const FlightTexts& texts) {
  std::vector<Issued> firsts;  // of each side
  std::vector<Signature> signatures;
  FlightDifference out;
  for (const Issued& one : issued) {
    const Signature signature = signature_of(one.parts, what, texts);
    const auto known = std::ranges::find_if(
        signatures, [&](const Signature& other) { return !differs(signature, other, what); });
    const auto index = static_cast<std::size_t>(known - signatures.begin());
    if (known == signatures.end()) {
      signatures.push_back(signature);
      firsts.push_back(one);
      out.sides.emplace_back();
    }
    out.sides[index].ranks.push_back(one.rank);
  }
  if (out.sides.size() < 2) return std::nullopt;
  const std::size_t part = first_unlike(firsts, what, texts);
  for (std::size_t i = 0; i < firsts.size(); ++i)
    out.sides[i].entry = firsts[i].parts[std::min(part, firsts[i].parts.size() - 1)];
  const bool is_count = what == What::operation && std::ranges::any_of(firsts, [&](const Issued& side) {
                          return part == side.parts.size();
                        });
  out.what = is_count ? What::count : what;
  std::ranges::stable_sort(out.sides, std::greater(),
                           [](const FlightSide& side) { return side.ranks.size(); });
  return out;
}

/// Ranks may pass different sizes to these operations, but the sums over all ranks must match.
std::string unequal_sums(const std::vector<Issued>& issued, const FlightTexts& texts) {
  std::int64_t in = 0, out = 0;
  for (const Issued& one : issued) {
    if (!is_uneven(texts.text_of(one.parts.front()->name))) return {};
    if (__builtin_add_overflow(in, texts.sizes_of(one.parts.front()->input_sizes).elems, &in) ||
        __builtin_add_overflow(out, texts.sizes_of(one.parts.front()->output_sizes).elems, &out))
      return {};
  }
  return in == out ? "" : fmt::format("all ranks together give {} elements and take {}", in, out);
}

std::optional<FlightDifference> difference_at(const FlightGroupLanes& group, std::int64_t sequence,
                                              const FlightTexts& texts) {
  std::vector<Issued> issued;
  for (const FlightLane& lane : group.lanes) {
    if (const FlightParts parts = lane.at(sequence); !parts.empty()) issued.push_back({lane.rank, parts});
  }
  if (issued.empty()) return std::nullopt;
  std::optional<FlightDifference> out;
  for (const What what : {What::operation, What::sizes, What::type}) {
    if ((out = unlike(issued, what, texts))) break;
  }
  if (!out && issued.size() == group.lanes.size()) {
    const std::string sums = unequal_sums(issued, texts);
    if (sums.empty()) return std::nullopt;
    out = FlightDifference{What::sizes, 0, false, {}, sums};
    for (const Issued& one : issued) out->sides.push_back({{one.rank}, one.parts.front()});
  }
  if (out) out->sequence = sequence;
  return out;
}

// ---- the sequence numbers of a group

/// The first sequence number that some members certainly never issued while others did; the entries of the
/// others may have been overwritten.
std::optional<FlightDifference> missing_in(const FlightGroupLanes& group,
                                           const std::vector<FlightProgress>& ranks) {
  FlightDifference out;
  out.what = What::missing;
  std::optional<std::int64_t> most, least, earliest;
  for (const FlightProgress& one : ranks) {
    if (one.issued) most = std::max(most.value_or(0), *one.issued);
    if (one.first) earliest = std::min(earliest.value_or(INT64_MAX), *one.first);
  }
  // A rank that issued nothing lacks the first one.
  const auto next_of = [&](const FlightProgress& one) {
    return one.issued ? *one.issued + 1 : earliest.value_or(0);
  };
  for (const FlightProgress& one : ranks) {
    if (one.whole && most && next_of(one) <= *most) least = std::min(least.value_or(INT64_MAX), next_of(one));
  }
  if (!least) return std::nullopt;
  out.sequence = *least;
  FlightSide absent;
  std::map<FlightTexts::Id, FlightSide> by_name;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].whole && next_of(ranks[i]) == *least) {
      absent.ranks.push_back(ranks[i].rank);
    } else if (const FlightParts parts = group.lanes[i].at(*least); !parts.empty()) {
      FlightSide& side = by_name[parts.front()->name];
      side.ranks.push_back(ranks[i].rank);
      if (side.entry == nullptr) side.entry = parts.front();
    }
  }
  for (auto& [name, side] : by_name) out.sides.push_back(std::move(side));
  out.sides.push_back(std::move(absent));
  return out;
}

/// The oldest operation that all issued alike and that is not completed on every rank.
std::optional<FlightDifference> unfinished_in(const FlightGroupLanes& group) {
  FlightDifference out;
  out.what = What::unfinished;
  std::optional<std::int64_t> oldest;
  for (const FlightLane& lane : group.lanes) {
    const auto open =
        std::ranges::find_if(lane.collectives, [](const FlightEntry* one) { return one->is_open(); });
    if (open != lane.collectives.end()) oldest = std::min(oldest.value_or(INT64_MAX), (*open)->sequence);
  }
  if (!oldest) return std::nullopt;
  out.sequence = *oldest;
  std::map<FlightState, FlightSide> by_state;
  for (const FlightLane& lane : group.lanes) {
    const FlightParts parts = lane.at(*oldest);
    if (parts.empty()) continue;
    FlightSide& side = by_state[parts.front()->state];
    side.ranks.push_back(lane.rank);
    if (side.entry == nullptr) side.entry = parts.front();
  }
  for (auto& [state, side] : by_state) out.sides.push_back(std::move(side));
  return out;
}

}  // namespace

std::optional<FlightDifference> collective_difference(const FlightGroupLanes& group,
                                                      const std::vector<FlightProgress>& ranks,
                                                      const FlightTexts& texts) {
  std::int64_t from = 0, to = 0;
  for (const FlightProgress& one : ranks) {
    if (one.first) from = std::max(from, *one.first);
    if (one.issued) to = std::max(to, *one.issued);
  }
  // Compare from the largest first sequence number on: earlier ones were overwritten on some ranks, later
  // ones are missing only on ranks that are behind.
  std::vector<std::int64_t> sequences;
  for (const FlightLane& lane : group.lanes) {
    for (const FlightEntry* one : lane.collectives) {
      if (one->sequence >= from) sequences.push_back(one->sequence);
    }
  }
  std::ranges::sort(sequences);
  sequences.erase(std::unique(sequences.begin(), sequences.end()), sequences.end());
  std::optional<FlightDifference> missing = missing_in(group, ranks);
  for (const std::int64_t sequence : sequences) {
    if (missing && sequence > missing->sequence) break;
    if (auto found = difference_at(group, sequence, texts)) {
      // Ranks that never issued it are a side of their own.
      if (missing && missing->sequence == sequence) found->sides.push_back(missing->sides.back());
      return found;
    }
  }
  return missing ? missing : unfinished_in(group);
}

bool issued_alike(FlightParts a, FlightParts b, const FlightTexts& texts) {
  return std::ranges::none_of(std::array{What::operation, What::sizes, What::type}, [&](What what) {
    return differs(signature_of(a, what, texts), signature_of(b, what, texts), what);
  });
}

}  // namespace shardscope::analysis
