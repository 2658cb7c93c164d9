#include "app/cli/parts_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/analysis/quantity_text.h"

namespace shardscope::cli {
namespace {

std::string how_it_ended(const store::RecordingPart& part) {
  if (part.ended == store::name_of(store::PartEnd::size)) return "ended by its size";
  if (part.ended == store::name_of(store::PartEnd::age)) return "ended by its age";
  if (part.ended == store::name_of(store::PartEnd::run)) return "ended with the recording";
  return "being written, or cut off";
}

std::string contents_text(std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t events,
                          std::uint64_t bytes) {
  return fmt::format("{} to {}, {} events, {}", analysis::time_text(begin_ns), analysis::time_text(end_ns),
                     events, analysis::bytes_text(static_cast<std::int64_t>(bytes)));
}

std::string gone_text(const store::RecordingPart& first, const store::RecordingPart& last,
                      std::uint64_t events, std::uint64_t bytes) {
  const bool one = first.part == last.part;
  return fmt::format("{}: not here, {}", one ? first.file : first.file + " to " + last.file,
                     contents_text(first.begin_ns, last.end_ns, events, bytes));
}

}  // namespace

std::vector<std::string> parts_text(const std::vector<store::RecordingPart>& parts) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const store::RecordingPart& part = parts[i];
    if (part.here) {
      out.push_back(fmt::format("{}: {}, {}", part.file,
                                contents_text(part.begin_ns, part.end_ns, part.events, part.bytes),
                                how_it_ended(part)));
      continue;
    }
    std::uint64_t events = part.events, bytes = part.bytes;
    for (; i + 1 < parts.size() && !parts[i + 1].here; ++i) {
      events += parts[i + 1].events;
      bytes += parts[i + 1].bytes;
    }
    out.push_back(gone_text(part, parts[i], events, bytes));
  }
  return out;
}

std::string parts_in_short(const std::vector<store::RecordingPart>& parts) {
  if (parts.empty()) return {};
  const auto here = std::ranges::count_if(parts, &store::RecordingPart::here);
  const auto all = static_cast<std::ptrdiff_t>(parts.size());
  if (here == all) return fmt::format("in {} file{}", all, all == 1 ? "" : "s");
  return fmt::format("in {} files, of which {} {} here", all, here, here == 1 ? "is" : "are");
}

nlohmann::json parts_json(const std::vector<store::RecordingPart>& parts) {
  if (parts.empty()) return nullptr;
  nlohmann::json out = nlohmann::json::array();
  for (const store::RecordingPart& part : parts) {
    out.push_back({{"part", part.part},
                   {"file", part.file},
                   {"begin_ns", part.begin_ns},
                   {"end_ns", part.end_ns},
                   {"events", part.events},
                   {"bytes", part.bytes},
                   {"ended", part.ended.empty() ? nlohmann::json(nullptr) : nlohmann::json(part.ended)},
                   {"here", part.here}});
  }
  return out;
}

}  // namespace shardscope::cli
