#include "app/analysis/torch_flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <utility>

namespace shardscope::analysis {
namespace {

[[noreturn]] void no_dump(const std::string& why) {
  throw std::invalid_argument("not a dump of PyTorch's Flight Recorder (" + why +
                              "); give the files that it wrote, one a rank (nccl_trace_rank_0, ...)");
}

/// Appends `part` to a key, with a zero byte as separator, which no part contains.
void add_part(std::string& key, std::string_view part) {
  key += part;
  key += '\0';
}

template <typename Value>
FlightTexts::Id interned(std::unordered_map<std::string, FlightTexts::Id>& known, std::vector<Value>& all,
                         std::string key, Value value) {
  const auto [at, is_new] = known.try_emplace(std::move(key), static_cast<FlightTexts::Id>(all.size()));
  if (is_new) all.push_back(std::move(value));
  return at->second;
}

class DumpReader {
  using Id = PlainData::Id;
  using Kind = PlainData::Kind;

 public:
  DumpReader(const PlainData& data, FlightTexts& texts) : data_(data), texts_(texts) {}

  FlightDump read(std::uint32_t rank) {
    FlightDump out;
    out.rank = rank;
    if (data_.kind(data_.root()) != Kind::dict) no_dump("it is no dictionary");
    const auto version = data_.find(data_.root(), "version");
    const auto entries = data_.find(data_.root(), "entries");
    if (!version || !data_.text(*version)) no_dump("it has no version");
    out.version = *data_.text(*version);
    if (!out.version.starts_with("2."))
      no_dump("it is of version " + out.version.substr(0, 20) + ", and 2.x is known");
    if (const auto library = data_.find(data_.root(), "comm_lib_version"); library && data_.text(*library))
      out.library = *data_.text(*library);
    read_groups(out);
    if (!entries) return out;  // JSON omits it if there are none
    if (data_.kind(*entries) != Kind::list) no_dump("its entries are no list");
    constexpr std::size_t kMostEntries = 1'000'000;
    if (data_.items(*entries).size() > kMostEntries) no_dump("it has more than a million entries");
    for (const Id entry : data_.items(*entries)) out.entries.push_back(read_entry(entry));
    std::ranges::stable_sort(out.entries, {}, &FlightEntry::record);
    return out;
  }

 private:
  /// Limits the total work: a small file may reference one large list a million times.
  void spend(std::size_t count) {
    constexpr std::size_t kMost = 50'000'000;
    spent_ += count;
    if (spent_ > kMost) no_dump("it refers to the same lists more often than any dump does");
  }

  void read_groups(FlightDump& out) {
    const auto groups = data_.find(data_.root(), "pg_config");
    if (!groups) return;
    const auto all = data_.items(*groups);
    for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
      const auto name = data_.text(all[i]);
      const auto description = data_.find(all[i + 1], "desc"), ranks = data_.find(all[i + 1], "ranks");
      if (!name) no_dump("a process group has no name");
      spend(1 + name->size());
      FlightGroup& group = out.groups[std::string(*name)];
      if (description && data_.text(*description)) group.description = std::string(*data_.text(*description));
      if (ranks && data_.text(*ranks)) group.ranks = ranks_of(*data_.text(*ranks));
    }
  }

  /// "[0, 1, 2]"
  std::vector<std::uint32_t> ranks_of(std::string_view text) {
    constexpr std::uint32_t kLargest = 1'000'000;
    std::vector<std::uint32_t> out;
    spend(text.size());
    const char *at = text.data(), *const end = at + text.size();
    while (at != end) {
      if (*at < '0' || *at > '9') {
        if (std::string_view("[], ").find(*at) == std::string_view::npos)
          no_dump("the ranks of a process group are not as in [0, 1]");
        ++at;
        continue;
      }
      std::uint32_t rank = 0;
      const auto [after, error] = std::from_chars(at, end, rank);
      if (error != std::errc() || rank > kLargest) no_dump("a process group has a rank above a million");
      out.push_back(rank);
      at = after;
    }
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  FlightEntry read_entry(Id entry) {
    constexpr std::size_t kMostKeys = 64;
    if (data_.kind(entry) != Kind::dict || data_.items(entry).size() > 2 * kMostKeys)
      no_dump("an entry is no dictionary of what an entry has");
    spend(1);
    FlightEntry out;
    const auto group = data_.find(entry, "process_group");
    const auto name = data_.find(entry, "profiling_name");
    if (!group || data_.items(*group).empty() || !data_.text(data_.items(*group)[0]))
      no_dump("an entry has no process group");
    if (!name || !data_.text(*name)) no_dump("an entry has no profiling_name");
    out.group = text(data_.items(*group)[0]);
    if (data_.items(*group).size() > 1) out.description = text(data_.items(*group)[1]);
    // "nccl:all_reduce"; operation names contain no colon.
    const std::string_view whole = *data_.text(*name);
    const std::size_t colon = whole.rfind(':');
    spend(whole.size());
    out.backend = texts_.text(colon == std::string_view::npos ? "" : whole.substr(0, colon));
    out.name = texts_.text(colon == std::string_view::npos ? whole : whole.substr(colon + 1));
    if (const auto is_p2p = data_.find(entry, "is_p2p")) out.point_to_point = data_.boolean(*is_p2p) == true;
    out.sequence = integer(entry, out.point_to_point ? "p2p_seq_id" : "collective_seq_id");
    out.record = integer(entry, "record_id");
    out.created_ns = integer(entry, "time_created_ns");
    out.input_sizes = sizes(entry, "input_sizes");
    out.output_sizes = sizes(entry, "output_sizes");
    out.input_types = types(entry, "input_dtypes");
    out.output_types = types(entry, "output_dtypes");
    out.frames = frames(entry);
    const auto state = data_.find(entry, "state");
    const std::string_view named = state ? data_.text(*state).value_or("") : "";
    for (const FlightState one : {FlightState::scheduled, FlightState::started, FlightState::completed}) {
      if (named == name_of(one)) out.state = one;
    }
    const auto retired = data_.find(entry, "retired");
    if (retired && data_.boolean(*retired) == true && out.is_open()) {
      // NCCL's watchdog retires an operation before completion only on a timeout. Gloo never records start or
      // completion: it retires what has ended.
      if (texts_.text_of(out.backend) == "gloo")
        out.state = FlightState::ended;
      else
        out.timed_out = true;
    }
    return out;
  }

  std::int64_t integer(Id entry, const char* key) {
    const auto value = data_.find(entry, key);
    const auto number = value ? data_.integer(*value) : std::nullopt;
    if (!number) no_dump(fmt::format("an entry has no {}", key));
    if (*number < 0) no_dump(fmt::format("an entry's {} is below zero", key));
    return *number;
  }

  FlightTexts::Id text(Id id) {
    const std::string_view out = data_.text(id).value_or("");
    spend(out.size());
    return texts_.text(out);
  }

  FlightTexts::Id sizes(Id entry, const char* key) {
    const auto value = data_.find(entry, key);
    if (!value) return 0;
    std::vector<std::vector<std::int64_t>> out;
    for (const Id tensor : data_.items(*value)) {
      spend(1 + data_.items(tensor).size());
      std::vector<std::int64_t>& dims = out.emplace_back();
      for (const Id dim : data_.items(tensor)) {
        const auto number = data_.integer(dim);
        if (!number || *number < 0) no_dump(fmt::format("an entry's {} are no sizes", key));
        dims.push_back(*number);
      }
    }
    return texts_.sizes(std::move(out));
  }

  /// Distinct types only, since these are compared.
  FlightTexts::Id types(Id entry, const char* key) {
    const auto value = data_.find(entry, key);
    if (!value) return 0;
    std::vector<std::string_view> all;
    spend(data_.items(*value).size());
    for (const Id one : data_.items(*value)) {
      if (const auto type = data_.text(one)) all.push_back(*type);
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::string out;
    for (const std::string_view type : all) {
      spend(type.size());
      out += (out.empty() ? "" : ", ") + std::string(type);
    }
    return texts_.text(out);
  }

  FlightTexts::Id frames(Id entry) {
    const auto value = data_.find(entry, "frames");
    if (!value) return 0;
    constexpr std::size_t kMostFrames = 512;
    // Each entry has its own list of shared frames: the ids of the frames tell whether the stack was already
    // read.
    const auto all = data_.items(*value).first(std::min(data_.items(*value).size(), kMostFrames));
    spend(all.size());
    std::string key;
    key.reserve(all.size() * sizeof(Id));
    for (const Id one : all) key.append(reinterpret_cast<const char*>(&one), sizeof one);
    const auto [known, is_new] = frames_.try_emplace(std::move(key), FlightTexts::Id{0});
    if (!is_new) return known->second;
    std::vector<FlightFrame> out;
    for (const Id one : all) {
      const auto function = data_.find(one, "name"), file = data_.find(one, "filename"),
                 line = data_.find(one, "line");
      FlightFrame& frame = out.emplace_back();
      if (function) frame.function = data_.text(*function).value_or("");
      if (file) frame.file = data_.text(*file).value_or("");
      if (line) frame.line = data_.integer(*line).value_or(0);
      spend(1 + frame.function.size() + frame.file.size());
    }
    return known->second = texts_.frames(std::move(out));
  }

  const PlainData& data_;
  FlightTexts& texts_;
  std::unordered_map<std::string, FlightTexts::Id> frames_;  ///< by the ids of the frames in the file
  std::size_t spent_ = 0;
};

}  // namespace

FlightTexts::FlightTexts() {
  (void)text("");
  (void)sizes({});
  (void)frames({});
}

FlightTexts::Id FlightTexts::text(std::string_view text) {
  return interned(by_text_, texts_, std::string(text), std::string(text));
}

FlightTexts::Id FlightTexts::sizes(std::vector<std::vector<std::int64_t>> of) {
  Sizes out;
  std::string key;
  for (const std::vector<std::int64_t>& tensor : of) {
    std::int64_t elems = 1;
    for (const std::int64_t dim : tensor) {
      add_part(key, std::to_string(dim));
      // Larger than any memory; sums of numbers from a file must not overflow.
      if (__builtin_mul_overflow(elems, dim, &elems)) elems = INT64_MAX;
    }
    key += ';';
    if (__builtin_add_overflow(out.elems, elems, &out.elems)) out.elems = INT64_MAX;
  }
  out.of = std::move(of);
  return interned(by_sizes_, sizes_, std::move(key), std::move(out));
}

FlightTexts::Id FlightTexts::frames(std::vector<FlightFrame> frames) {
  std::string key;
  for (const FlightFrame& frame : frames) {
    add_part(key, frame.function);
    add_part(key, frame.file);
    add_part(key, std::to_string(frame.line));
  }
  return interned(by_frames_, frames_, std::move(key), std::move(frames));
}

const char* name_of(FlightState state) {
  switch (state) {
    case FlightState::scheduled:
      return "scheduled";
    case FlightState::started:
      return "started";
    case FlightState::completed:
      return "completed";
    case FlightState::ended:
      return "ended";
    case FlightState::unknown:
      return "of unknown state";
  }
  return "";
}

FlightDump parse_flight_dump(std::string_view bytes, std::uint32_t rank, FlightTexts& texts) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) no_dump("it is empty");
  std::optional<PlainData> data;
  try {
    data = bytes[first] == '{' ? read_plain_json(bytes) : read_plain_pickle(bytes);
  } catch (const std::invalid_argument& error) {
    no_dump(error.what());
  }
  return DumpReader(*data, texts).read(rank);
}

const FlightFrame* users_frame(const std::vector<FlightFrame>& frames) {
  const auto installed = [](const FlightFrame& frame) {
    constexpr std::array kOthers = {"/site-packages/", "/dist-packages/", "<frozen ", "/torch/distributed/"};
    return std::ranges::any_of(kOthers,
                               [&](const char* part) { return frame.file.find(part) != std::string::npos; });
  };
  const auto own = std::ranges::find_if_not(frames, installed);
  if (own != frames.end()) return &*own;
  return frames.empty() ? nullptr : &frames.front();
}

}  // namespace shardscope::analysis
