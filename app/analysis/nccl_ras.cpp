#include "app/analysis/nccl_ras.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "app/analysis/foreign_json.h"

namespace shardscope::analysis {
namespace {

[[noreturn]] void no_answer(const std::string& why) {
  throw std::invalid_argument("not an answer of NCCL's RAS (" + why +
                              "); give what `ncclras` or `ncclras -f json` wrote");
}

// ---- JSON: all counts of all ranks

RasRank rank_of(const nlohmann::json& json) {
  RasRank out;
  out.rank = json.at("rank").get<std::uint32_t>();
  out.host = json.value("host", "");
  out.pid = json.value("pid", std::int64_t{0});
  if (json.contains("cuda_dev")) out.gpu = std::to_string(json.at("cuda_dev").get<std::int64_t>());
  if (json.contains("status")) out.dead = json.at("status").value("considered_dead", false);
  return out;
}

void take_communicator(const nlohmann::json& json, RasAnswer& answer) {
  std::string hash = json.at("hash").get<std::string>();
  if (hash.starts_with("0x")) hash.erase(0, 2);
  std::map<std::string, std::map<std::uint64_t, RasSet>> by_operation;
  for (const nlohmann::json& one : json.at("ranks")) {
    for (const auto& [operation, count] : one.at("collective_counts").items()) {
      RasSet& set = by_operation[operation][count.get<std::uint64_t>()];
      set.launched = count.get<std::uint64_t>();
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

// ---- text: sections that name outliers

std::uint64_t number_of(const std::ssub_match& match) { return std::stoull(match.str()); }

class TextReader {
 public:
  RasAnswer read(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.size() <= kLongest) take(line);
    }
    if (!known_) no_answer("its text has no summary");
    for (RasUneven& one : answer_.uneven) std::ranges::sort(one.sets, {}, &RasSet::launched);
    return std::move(answer_);
  }

 private:
  static constexpr std::size_t kLongest = 1000;  ///< of a line: none that is looked for is as long
  void take(const std::string& line) {
    static const std::regex version("NCCL version (\\S+).*"),
        title("#\\d{1,9}-\\d{1,9} \\(([0-9a-f]{1,16})\\) ([A-Z]+)"),
        counts("  Communicator ranks have different (\\w+) operation counts"),
        many("  (\\d{1,9}) ranks have (?:launched up to operation (\\d{1,18})|not launched any operations)"),
        one("  Rank (\\d{1,9}) has (?:launched up to operation (\\d{1,18})|not launched any operations) -- "
            "(.*)"),
        member("  Rank (\\d{1,9}) -- (.*)"), dead("  (Process \\d+ on node .*)"),
        lack("  Missing communicator data from (\\d{1,9}) ranks?"), list("  The missing ranks?: ([0-9, -]+)");
    std::smatch found;
    if (std::regex_match(line, found, version)) {
      answer_.version = found[1];
    } else if (line.starts_with("Communicators...")) {
      known_ = true;
    } else if (std::regex_match(line, found, title)) {
      communicator_ = found[1];
      section_ = found[2] == "INCOMPLETE" ? Section::missing : Section::other;
    } else if (line == "DEAD") {
      section_ = Section::dead;
    } else if (std::regex_match(line, found, counts)) {
      section_ = Section::uneven;
      answer_.uneven.push_back({communicator_, found[1], {}});
    } else if (section_ == Section::uneven && std::regex_match(line, found, many)) {
      answer_.uneven.back().sets.push_back(
          {found[2].matched ? number_of(found[2]) : 0, number_of(found[1]), {}});
    } else if (section_ == Section::uneven && std::regex_match(line, found, one)) {
      answer_.uneven.back().sets.push_back({found[2].matched ? number_of(found[2]) : 0, 1, {}});
      answer_.uneven.back().sets.back().ranks.push_back(rank(found[1], found[3]));
    } else if (section_ == Section::uneven && std::regex_match(line, found, member)) {
      if (!answer_.uneven.back().sets.empty())
        answer_.uneven.back().sets.back().ranks.push_back(rank(found[1], found[2]));
    } else if (section_ == Section::missing && std::regex_match(line, found, lack)) {
      answer_.missing.push_back({communicator_, {}, number_of(found[1])});
    } else if (section_ == Section::missing && std::regex_match(line, found, member)) {
      if (!answer_.missing.empty()) answer_.missing.back().ranks.push_back(rank(found[1], found[2]));
    } else if (section_ == Section::missing && std::regex_match(line, found, list)) {
      if (!answer_.missing.empty()) take_list(found[1]);
    } else if (section_ == Section::dead && std::regex_match(line, found, dead)) {
      answer_.dead.push_back(found[1]);
    } else if (line.empty()) {
      section_ = Section::other;
    } else if (line.starts_with("  Communicator ranks have different ")) {
      section_ = Section::other;  // their status: said of what is being made or torn down
    }
  }

  static RasRank rank(const std::string& number, const std::string& rest) {
    static const std::regex where("GPU (\\S+) managed by process (\\d{1,12}) on node (\\S+)");
    RasRank out;
    out.rank = static_cast<std::uint32_t>(std::stoul(number));
    std::smatch found;
    if (std::regex_match(rest, found, where)) {
      out.gpu = found[1];
      out.pid = std::stoll(found[2]);
      out.host = found[3];
    }
    return out;
  }

  void take_list(const std::string& list) {
    static const std::regex number("\\d{1,9}");
    for (std::sregex_iterator at(list.begin(), list.end(), number), end; at != end; ++at)
      answer_.missing.back().ranks.push_back(
          {static_cast<std::uint32_t>(std::stoul(at->str())), {}, {}, 0, false});
  }

  enum class Section : std::uint8_t { other, uneven, missing, dead } section_ = Section::other;
  RasAnswer answer_;
  std::string communicator_;
  bool known_ = false;
};

// ---- in words

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

/// The same in the later answer: nothing was launched since.
std::optional<bool> stands(const RasUneven& one, const std::optional<RasAnswer>& later) {
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
    if (one.sets.size() > 1) out.push_back(text_of(one, stands(one, later)));
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
    const auto still = stands(one, later);
    out["uneven"].push_back({{"communicator", one.communicator},
                             {"operation", one.operation},
                             {"sets", std::move(sets)},
                             {"stands", still ? nlohmann::json(*still) : nlohmann::json(nullptr)}});
  }
  out["missing"] = nlohmann::json::array();
  for (const RasMissing& one : answer.missing)
    out["missing"].push_back(
        {{"communicator", one.communicator}, {"count", one.count}, {"ranks", ranks(one.ranks)}});
  return to_text(out);
}

}  // namespace shardscope::analysis
