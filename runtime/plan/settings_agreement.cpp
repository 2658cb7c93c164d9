#include "runtime/plan/settings_agreement.h"

#include <algorithm>
#include <stdexcept>

namespace shardscope::plan {
namespace {

constexpr char kEnd = '\0';          // ends each field; command lines and JSON texts contain none
constexpr std::size_t kShown = 120;  // bytes of a value in a message
constexpr std::size_t kNamed = 4;    // further keys in a message

// Linear search: a list has some tens of settings, with unique keys.
const RankSetting* find(const std::vector<RankSetting>& settings, const std::string& key) {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const RankSetting& setting) { return setting.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

std::string in_words(std::uint32_t rank, const std::optional<RankSetting>& setting) {
  std::string text = "rank " + std::to_string(rank) + " has ";
  if (!setting) return text + "no such setting";
  std::string value = setting->value.empty() ? "nothing" : setting->value;
  // A value may be a whole JSON text or command line, and a message has to stay readable.
  if (value.size() > kShown) value = value.substr(0, kShown) + "...";
  text += value;
  if (!setting->note.empty()) text += " (" + setting->note + ")";
  return text;
}

}  // namespace

// Key, value, note, each terminated by kEnd: no lengths and no escapes, and fields may be empty.
std::string to_text(const std::vector<RankSetting>& settings) {
  std::string text;
  for (const RankSetting& setting : settings) {
    for (std::string field : {setting.key, setting.value, setting.note}) {
      // A stray kEnd must not shift the following fields.
      std::replace(field.begin(), field.end(), kEnd, ' ');
      text += field + kEnd;
    }
  }
  return text;
}

std::vector<RankSetting> settings_of(std::string_view text) {
  const auto field = [&] {
    const std::size_t end = text.find(kEnd);
    // kEnd terminates fields, it does not separate them, so that a truncated text is detected.
    if (end == std::string_view::npos) throw std::invalid_argument("settings of a rank: cut inside a field");
    std::string read(text.substr(0, end));
    text.remove_prefix(end + 1);
    return read;
  };
  std::vector<RankSetting> settings;
  // In this order: each call removes its field from the front of `text`.
  while (!text.empty()) {
    RankSetting& setting = settings.emplace_back();
    setting.key = field();
    setting.value = field();
    setting.note = field();
  }
  return settings;
}

std::optional<SettingDifference> first_difference(const std::vector<RankSetting>& first,
                                                  const std::vector<RankSetting>& other) {
  std::optional<SettingDifference> difference;
  const auto differs = [&](const RankSetting* a, const RankSetting* b) {
    // At least one is not null: a key is compared only if one of the ranks has it.
    const RankSetting& named = a != nullptr ? *a : *b;
    // Only the keys of further differences: the first has to be fixed first.
    if (difference) {
      difference->more.push_back(named.key);
      return;
    }
    difference.emplace();
    difference->key = named.key;
    if (a != nullptr) difference->first = *a;
    if (b != nullptr) difference->other = *b;
    for (const RankSetting* setting : {a, b}) {  // the one received from the other rank has no advice
      if (setting != nullptr && difference->advice.empty()) difference->advice = setting->advice;
    }
  };
  for (const RankSetting& setting : first) {
    const RankSetting* theirs = find(other, setting.key);
    // Notes and advice may differ: they are not settings.
    if (theirs == nullptr || theirs->value != setting.value) differs(&setting, theirs);
  }
  for (const RankSetting& setting : other) {
    // Keys of both were compared above.
    if (find(first, setting.key) == nullptr) differs(nullptr, &setting);
  }
  return difference;
}

std::string describe_difference(const SettingDifference& difference, std::uint32_t other_rank,
                                std::uint32_t ranks_that_differ, std::uint32_t world) {
  std::string text =
      difference.key + ": " + in_words(other_rank, difference.other) + ", " + in_words(0, difference.first);
  if (!difference.more.empty()) {
    const std::size_t more = difference.more.size();
    text += "; " + std::to_string(more) + (more == 1 ? " more setting differs: " : " more settings differ: ");
    // Only a few keys: one cause often changes many settings.
    for (std::size_t i = 0; i < std::min(more, kNamed); ++i) text += (i > 0 ? ", " : "") + difference.more[i];
    if (more > kNamed) text += ", ...";
  }
  if (ranks_that_differ > 1) {
    text += "; " + std::to_string(ranks_that_differ) + " of " + std::to_string(world) +
            " ranks differ from rank 0";
  }
  const std::string fallback = "start every rank of the run with the same settings";
  return text + "; " + (difference.advice.empty() ? fallback : difference.advice);
}

}  // namespace shardscope::plan
