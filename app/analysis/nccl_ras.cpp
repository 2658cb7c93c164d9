#include "app/analysis/nccl_ras.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "app/analysis/foreign_json.h"

namespace shardscope::analysis {
namespace {

[[noreturn]] void no_answer(const std::string& why) {
  throw std::invalid_argument("not an answer of NCCL's RAS (" + why +
                              "); give what `ncclras` or `ncclras -f json` wrote");
}

// ---- JSON: all counts of all ranks

/// get() would convert numbers of another type, with undefined results out of range: reject them.
template <typename T>
T whole(const nlohmann::json& json) {
  const bool fits = json.is_number_unsigned() ? json.get<std::uint64_t>() <=
                                                    static_cast<std::uint64_t>(std::numeric_limits<T>::max())
                                              : std::is_signed_v<T> && json.is_number_integer();
  if (!fits) {
    no_answer((json.is_number() ? json.dump() : std::string(json.type_name())) +
              " where a whole number should be");
  }
  return json.get<T>();
}

RasRank rank_of(const nlohmann::json& json) {
  RasRank out;
  out.rank = whole<std::uint32_t>(json.at("rank"));
  out.host = json.value("host", "");
  if (json.contains("pid")) out.pid = whole<std::int64_t>(json.at("pid"));
  if (json.contains("cuda_dev")) out.gpu = std::to_string(whole<std::int64_t>(json.at("cuda_dev")));
  if (json.contains("status")) out.dead = json.at("status").value("considered_dead", false);
  return out;
}

void take_communicator(const nlohmann::json& json, RasAnswer& answer) {
  std::string hash = json.at("hash").get<std::string>();
  if (hash.starts_with("0x")) hash.erase(0, 2);
  std::map<std::string, std::map<std::uint64_t, RasSet>> by_operation;
  for (const nlohmann::json& one : json.at("ranks")) {
    for (const auto& [operation, count] : one.at("collective_counts").items()) {
      const auto launched = whole<std::uint64_t>(count);
      RasSet& set = by_operation[operation][launched];
      set.launched = launched;
      ++set.count;
      set.ranks.push_back(rank_of(one));
    }
  }
  for (auto& [operation, sets] : by_operation) {
    if (sets.size() < 2) continue;
    RasUneven& uneven = answer.uneven.emplace_back(RasUneven{hash, operation, {}});
    for (auto& [launched, set] : sets) uneven.sets.push_back(std::move(set));
  }
  if (!json.contains("missing_ranks") || json.at("missing_ranks").empty()) return;
  RasMissing& missing = answer.missing.emplace_back(RasMissing{hash, {}, 0});
  for (const nlohmann::json& one : json.at("missing_ranks")) missing.ranks.push_back(rank_of(one));
  missing.count = missing.ranks.size();
}

RasAnswer parse_json(const std::string& text) {
  const nlohmann::json json = parse_foreign(text);
  if (!json.is_object() || !json.contains("communicators")) no_answer("its JSON has no communicators");
  RasAnswer answer;
  try {
    answer.version = json.value("nccl_version", "");
    for (const nlohmann::json& one : json.at("communicators")) take_communicator(one, answer);
    answer.communicators = json.at("communicators").size();
  } catch (const nlohmann::json::exception& error) {
    no_answer(error.what());
  }
  return answer;
}

// ---- text: only outliers are named

/// A line, consumed from its begin. Each function consumes what it is named for; if that is not there it
/// returns false and consumes nothing.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}
  bool text(std::string_view wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(wanted.size());
    return true;
  }
  bool number(std::uint64_t& out, std::size_t most_digits = 9) {
    const std::size_t digits = span(is_digit);
    if (digits == 0 || digits > most_digits) return false;
    std::from_chars(rest_.data(), rest_.data() + digits, out);
    rest_.remove_prefix(digits);
    return true;
  }
  template <typename Of>
  bool word(std::string& out, Of of) {
    const std::size_t length = span(of);
    if (length == 0) return false;
    out = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }
  [[nodiscard]] bool ended() const { return rest_.empty(); }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }
  static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
  static bool is_letter(char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); }
  static bool is_not_space(char c) { return c != ' ' && c != '\t'; }

 private:
  template <typename Of>
  [[nodiscard]] std::size_t span(Of of) const {
    return static_cast<std::size_t>(std::ranges::find_if_not(rest_, of) - rest_.begin());
  }
  std::string_view rest_;
};

class TextReader {
 public:
  RasAnswer read(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      take(line);
    }
    if (!known_) no_answer("its text has no summary");
    for (RasUneven& one : answer_.uneven) std::ranges::sort(one.sets, {}, &RasSet::launched);
    return std::move(answer_);
  }

 private:
  void take(const std::string& line) {
    if (line.empty()) {
      section_ = Section::other;
    } else if (line.starts_with("Communicators...")) {
      known_ = true;
    } else if (line == "DEAD") {
      section_ = Section::dead;
    } else if (!version(Line(line)) && !title(Line(line)) && !counts(Line(line))) {
      if (section_ == Section::uneven) launched(Line(line));
      if (section_ == Section::missing) missing(Line(line));
      if (section_ == Section::dead && line.starts_with("  Process ")) answer_.dead.push_back(line.substr(2));
    }
  }

  bool version(Line line) {
    return line.text("NCCL version ") && line.word(answer_.version, Line::is_not_space);
  }

  /// "#0-1 (cf264af53edbe986) INCOMPLETE"
  bool title(Line line) {
    std::uint64_t group = 0, number = 0;
    std::string hash, state;
    if (!(line.text("#") && line.number(group) && line.text("-") && line.number(number) && line.text(" (") &&
          line.word(hash, Line::is_hex) && line.text(") ") && line.word(state, Line::is_upper) &&
          line.ended()))
      return false;
    communicator_ = hash;
    section_ = state == "INCOMPLETE" ? Section::missing : Section::other;
    return true;
  }

  /// "  Communicator ranks have different AllReduce operation counts"; a line about different status concerns
  /// a communicator that is being created or destroyed.
  bool counts(Line line) {
    std::string operation;
    if (!line.text("  Communicator ranks have different ")) return false;
    section_ = Section::other;
    if (line.word(operation, Line::is_letter) && line.text(" operation counts") && line.ended()) {
      section_ = Section::uneven;
      answer_.uneven.push_back({communicator_, operation, {}});
    }
    return true;
  }

  /// "  30 ranks have launched up to operation 6650", "  Rank 4 has not launched any operations -- GPU 4
  /// ...", or a member of the preceding set: "  Rank 0 -- GPU 0 ..."
  void launched(Line line) {
    std::vector<RasSet>& sets = answer_.uneven.back().sets;
    std::uint64_t number = 0, operation = 0;
    if (line.text("  Rank ")) {
      if (!line.number(number)) return;
      if (line.text(" has ") && up_to(line, operation)) sets.push_back({operation, 1, {}});
      if (!sets.empty() && line.text(" -- ")) sets.back().ranks.push_back(rank(number, line));
    } else if (line.text("  ") && line.number(number) && line.text(" ranks have ") &&
               up_to(line, operation) && line.ended()) {
      sets.push_back({operation, number, {}});
    }
  }

  static bool up_to(Line& line, std::uint64_t& operation) {
    return line.text("not launched any operations") ||
           (line.text("launched up to operation ") && line.number(operation, 18));
  }

  /// "  Missing communicator data from 2 ranks", then "  The missing ranks: 21, 23-25" or "  Rank 21 -- GPU 5
  /// ..."
  void missing(Line line) {
    std::uint64_t number = 0;
    if (line.text("  Missing communicator data from ")) {
      if (line.number(number)) answer_.missing.push_back({communicator_, {}, number});
    } else if (answer_.missing.empty()) {
      return;
    } else if (line.text("  Rank ")) {
      if (line.number(number) && line.text(" -- "))
        answer_.missing.back().ranks.push_back(rank(number, line));
    } else if (line.text("  The missing rank")) {
      (void)line.text("s");
      if (!line.text(": ")) return;
      std::vector<RasRank>& ranks = answer_.missing.back().ranks;
      while (line.number(number)) {
        std::uint64_t last = number;
        if (line.text("-") && !line.number(last)) return;
        for (; number <= last && ranks.size() < answer_.missing.back().count; ++number)
          ranks.push_back({static_cast<std::uint32_t>(number), {}, {}, 0, false});
        if (!line.text(", ")) return;
      }
    }
  }

  /// "GPU 4 managed by process 483076 on node 172.16.64.210", or a statement that nothing is known of it.
  static RasRank rank(std::uint64_t number, Line line) {
    RasRank out;
    out.rank = static_cast<std::uint32_t>(number);
    std::string gpu, host;
    std::uint64_t pid = 0;
    if (line.text("GPU ") && line.word(gpu, Line::is_not_space) && line.text(" managed by process ") &&
        line.number(pid, 12) && line.text(" on node ") && line.word(host, Line::is_not_space) &&
        line.ended()) {
      out.gpu = gpu;
      out.pid = static_cast<std::int64_t>(pid);
      out.host = host;
    }
    return out;
  }

  enum class Section : std::uint8_t { other, uneven, missing, dead } section_ = Section::other;
  RasAnswer answer_;
  std::string communicator_;
  bool known_ = false;
};

// ---- text output

std::string text_of(const RasRank& rank) {
  std::string out = "rank " + std::to_string(rank.rank);
  if (rank.pid == 0 && rank.host.empty()) return out;
  return out + fmt::format(" (process {} on {}{})", rank.pid, rank.host,
                           rank.gpu.empty() ? "" : ", GPU " + rank.gpu);
}

std::string text_of(const std::vector<RasRank>& ranks, std::size_t count) {
  constexpr std::size_t kMost = 8;
  std::string out;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i)
    out += (i == 0 ? "" : ", ") + text_of(ranks[i]);
  const std::size_t more = count - std::min(count, std::min(ranks.size(), kMost));
  if (more > 0) out += out.empty() ? fmt::format("{} ranks", more) : fmt::format(" and {} more", more);
  return out;
}

/// Whether the later answer has the same counts: nothing was launched in between.
std::optional<bool> unchanged(const RasUneven& one, const std::optional<RasAnswer>& later) {
  if (!later) return std::nullopt;
  return std::ranges::any_of(later->uneven, [&](const RasUneven& other) {
    return other.communicator == one.communicator && other.operation == one.operation &&
           std::ranges::equal(one.sets, other.sets, [](const RasSet& a, const RasSet& b) {
             return a.launched == b.launched && a.count == b.count;
           });
  });
}

std::string text_of(const RasUneven& one, const std::optional<bool>& still) {
  const std::uint64_t most = one.sets.back().launched;
  std::string out = fmt::format("communicator {}: ", one.communicator);
  for (std::size_t i = 0; i + 1 < one.sets.size(); ++i) {
    const RasSet& set = one.sets[i];
    out += fmt::format("{}{} {} launched {} {}", i == 0 ? "" : "; ", text_of(set.ranks, set.count),
                       set.count == 1 ? "has" : "have", one.operation,
                       set.launched == 0 ? "never" : fmt::format("up to number {}", set.launched));
  }
  out += fmt::format(", {} up to number {}. ",
                     one.sets.back().count == 1 ? text_of(one.sets.back().ranks, 1)
                                                : fmt::format("{} ranks", one.sets.back().count),
                     most);
  return out + (!still   ? "An instant of a run that goes on looks so too: ask again and give both answers."
                : *still ? "The later answer has the same numbers: nothing was launched between the two."
                         : "The later answer has other numbers: it goes on.");
}

}  // namespace

RasAnswer parse_ras(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) no_answer("it is empty");
  return text[first] == '{' ? parse_json(text) : TextReader().read(text);
}

std::vector<std::string> ras_lines(const RasAnswer& answer, const std::optional<RasAnswer>& later) {
  std::vector<std::string> out;
  for (const RasUneven& one : answer.uneven) {
    if (one.sets.size() > 1) out.push_back(text_of(one, unchanged(one, later)));
  }
  for (const RasMissing& one : answer.missing) {
    const bool dead = std::ranges::any_of(one.ranks, &RasRank::dead);
    out.push_back(fmt::format("communicator {}: no answer of {}{}", one.communicator,
                              text_of(one.ranks, one.count), dead ? ", given up as dead" : ""));
  }
  for (const std::string& process : answer.dead) out.push_back("given up as dead: " + process);
  if (out.empty())
    out.emplace_back(
        "every communicator's ranks have launched the same numbers of operations, and all answered");
  return out;
}

std::string ras_json(const RasAnswer& answer, const std::optional<RasAnswer>& later) {
  const auto ranks = [](const std::vector<RasRank>& of) {
    nlohmann::json out = nlohmann::json::array();
    for (const RasRank& rank : of)
      out.push_back({{"rank", rank.rank},
                     {"host", rank.host},
                     {"pid", rank.pid},
                     {"gpu", rank.gpu},
                     {"dead", rank.dead}});
    return out;
  };
  nlohmann::json out = {
      {"nccl_version", answer.version}, {"lines", ras_lines(answer, later)}, {"dead", answer.dead}};
  out["uneven"] = nlohmann::json::array();
  for (const RasUneven& one : answer.uneven) {
    nlohmann::json sets = nlohmann::json::array();
    for (const RasSet& set : one.sets)
      sets.push_back({{"launched", set.launched}, {"count", set.count}, {"ranks", ranks(set.ranks)}});
    const auto same = unchanged(one, later);
    out["uneven"].push_back({{"communicator", one.communicator},
                             {"operation", one.operation},
                             {"sets", std::move(sets)},
                             {"unchanged", same ? nlohmann::json(*same) : nlohmann::json(nullptr)}});
  }
  out["missing"] = nlohmann::json::array();
  for (const RasMissing& one : answer.missing)
    out["missing"].push_back(
        {{"communicator", one.communicator}, {"count", one.count}, {"ranks", ranks(one.ranks)}});
  return to_text(out);
}

}  // namespace shardscope::analysis
