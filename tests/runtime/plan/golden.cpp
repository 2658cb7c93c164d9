#include "tests/runtime/plan/golden.h"

#include <stdexcept>

namespace shardscope::golden {
namespace {

std::string short_text(const Json& value) {
  std::string text = value.dump();
  if (text.size() > 300) text = text.substr(0, 297) + "...";
  return text;
}

/// "/key" in front of a path; "/" alone adds nothing.
std::string below(const std::string& key, const std::string& inside) {
  std::string path(1, '/');
  path += key;
  if (inside != "/") path += inside;
  return path;
}

}  // namespace

void Report::agree(const std::string& name, const std::string& what) {
  ++agreed_;
  lines_.push_back("  agree   " + name + ": " + what);
}

void Report::differ(const std::string& name, const std::string& where, const Json& expected,
                    const Json& got) {
  ++disagreed_;
  lines_.push_back("  DIFFER  " + name + ": first difference at " + (where.empty() ? "/" : where) +
                   ": expected " + short_text(expected) + ", got " + short_text(got));
}

void Report::fail(const std::string& name, const std::string& what) {
  ++disagreed_;
  lines_.push_back("  FAIL    " + name + ": " + what);
}

void Report::note(const std::string& text) { lines_.push_back("  note    " + text); }

std::string first_difference(const Json& expected, const Json& got) {
  if (expected.is_number() && got.is_number()) return expected == got ? "" : "/";
  if (expected.type() != got.type()) return "/";
  if (expected.is_array()) {
    const std::size_t common = std::min(expected.size(), got.size());
    for (std::size_t i = 0; i < common; ++i) {
      const std::string inside = first_difference(expected[i], got[i]);
      if (!inside.empty()) return below(std::to_string(i), inside);
    }
    return expected.size() == got.size() ? "" : below(std::to_string(common), "/");
  }
  if (expected.is_object()) {
    for (const auto& [key, value] : expected.items()) {
      if (!got.contains(key)) return below(key, "/");
      const std::string inside = first_difference(value, got[key]);
      if (!inside.empty()) return below(key, inside);
    }
    for (const auto& [key, value] : got.items()) {
      if (!expected.contains(key)) return below(key, "/");
    }
    return "";
  }
  return expected == got ? "" : "/";
}

Json value_at(const Json& json, const std::string& path) {
  if (path == "/") return json;
  try {
    return json.at(Json::json_pointer(path));
  } catch (const Json::exception&) {
    return "(nothing)";
  }
}

bool compare(Report& report, const std::string& name, const Json& expected, const Json& got) {
  const std::string where = first_difference(expected, got);
  if (where.empty()) return true;
  report.differ(name, where, value_at(expected, where), value_at(got, where));
  return false;
}

const Json& list_at(const Json& holder, const char* key) {
  if (!holder.is_object() || !holder.contains(key)) {
    throw std::invalid_argument(std::string("\"") + key + "\" is missing");
  }
  const Json& list = holder.at(key);
  if (!list.is_array()) {
    throw std::invalid_argument(std::string("\"") + key + "\" is " + short_text(list) +
                                ", but it must be a list");
  }
  return list;
}

std::uint32_t world_of(const Json& world) {
  constexpr std::int64_t kMost = 65536;
  const std::int64_t ranks = world.is_number_integer() ? world.get<std::int64_t>() : 0;
  if (ranks < 1 || ranks > kMost) {
    throw std::invalid_argument("world is " + short_text(world) + "; it must be from 1 to " +
                                std::to_string(kMost));
  }
  return static_cast<std::uint32_t>(ranks);
}

std::string label_of(const Json& holder, const char* key, const std::string& place) {
  const auto found = holder.is_object() ? holder.find(key) : holder.end();
  return holder.is_object() && found != holder.end() && found->is_string() ? found->get<std::string>()
                                                                           : place;
}

void guarded(Report& report, const std::string& name, const std::function<void()>& check) {
  try {
    check();
  } catch (const std::exception& error) {
    report.fail(name, error.what());
  }
}

}  // namespace shardscope::golden
