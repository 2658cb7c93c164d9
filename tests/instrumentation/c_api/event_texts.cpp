#include "tests/instrumentation/c_api/event_texts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "instrumentation/event_table.h"

namespace shardscope::test {
namespace {

namespace ev = instrumentation;

constexpr std::size_t kWidth = 110;
constexpr char kNoBreak = '\1';  ///< a space at which no line ends

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::toupper(c); });
  return out;
}

/// Words of `text`, each line after the first with `indent` before it.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::istringstream words(text);
  std::string out, word;
  std::size_t column = 0;
  while (words >> word) {
    if (column > 0 && column + 1 + word.size() > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  std::ranges::replace(out, kNoBreak, ' ');
  return out;
}

/// Functions that are older than one of their fields keep their signature, in events.h; the one with every
/// field has the longer name.
std::string function_of(ev::EventKind kind) {
  static const std::map<ev::EventKind, const char*> kLonger{
      {ev::EventKind::collective_begin, "_among"},  {ev::EventKind::collective_end, "_among"},
      {ev::EventKind::trace_invalidated, "_by"},    {ev::EventKind::columns_selected, "_because"},
      {ev::EventKind::deferred_update, "_because"},
  };
  const auto longer = kLonger.find(kind);
  return std::string("shardscope_") + ev::name_of(kind) + (longer == kLonger.end() ? "" : longer->second);
}

std::string c_type(const ev::FieldInfo& field) {
  if (field.type == "double") return "double";
  if (field.width > 32) return "int64_t";
  return field.width > 16 ? "uint32_t" : field.width > 8 ? "uint16_t" : "uint8_t";
}

/// The value of one slot from its fields; `none` where it has none.
std::string slot_value(const ev::KindInfo& kind, ev::EventSlot slot, const char* none) {
  std::string parts;
  for (const ev::FieldInfo& field : kind.fields) {
    if (field.slot != slot) continue;
    const std::string name = field.name;
    if (!field.is_part()) return field.type == "double" ? "shardscope_bits_(" + name + ")" : name;
    std::string value = field.type == "bool"
                            ? "(uint32_t)(" + name + " != 0)"
                            : "((uint32_t)" + name + " & " + std::to_string((1U << field.width) - 1) + "U)";
    if (field.shift > 0) value += " << " + std::to_string(field.shift);
    std::ranges::replace(value, ' ', kNoBreak);
    parts += (parts.empty() ? "" : " | ") + value;
  }
  if (parts.empty()) return none;
  return slot == ev::EventSlot::code ? "(uint8_t)(" + parts + ")" : parts;
}

}  // namespace

std::string c_constants() {
  std::string out;
  for (const ev::KindInfo& kind : ev::event_kinds()) {
    out += "  SHARDSCOPE_EVENT_" + upper(ev::name_of(kind.kind)) + " = " +
           std::to_string(static_cast<unsigned>(kind.kind)) + ",\n";
  }
  const char* const last = ev::name_of(ev::kLastEventKind);
  return out + "  SHARDSCOPE_EVENT_LAST_ = SHARDSCOPE_EVENT_" + upper(last) + "\n";
}

std::string c_functions() {
  std::string out;
  for (const ev::KindInfo& kind : ev::event_kinds()) {
    if (ev::role_of(kind.kind) == ev::EventRole::library) continue;
    const std::string name = ev::name_of(kind.kind);
    // What the GPU's driver recorded has the GPU's time.
    const bool timed = name.starts_with("gpu_");
    std::vector<std::string> parameters;
    if (timed) parameters.emplace_back("int64_t monotonic_ns");
    if (!kind.lane) parameters.emplace_back("uint8_t lane");
    for (const ev::FieldInfo& field : kind.fields)
      parameters.push_back(c_type(field) + kNoBreak + field.name);
    std::string signature = "static inline void " + function_of(kind.kind) + "(";
    for (const std::string& parameter : parameters)
      signature += (&parameter == &parameters.front() ? "" : ", ") + parameter;
    std::string record = timed ? "shardscope_record_at_(monotonic_ns, " : "shardscope_record_(";
    record += "SHARDSCOPE_EVENT_" + upper(name) + ", ";
    record += kind.lane ? "SHARDSCOPE_LANE_" + upper(ev::name_of(*kind.lane)) : "lane";
    record += ", " + slot_value(kind, ev::EventSlot::code, "0");
    for (const ev::EventSlot slot : {ev::EventSlot::a, ev::EventSlot::b, ev::EventSlot::c})
      record += ", " + slot_value(kind, slot, "SHARDSCOPE_NO_ID");
    for (const ev::EventSlot slot : {ev::EventSlot::v0, ev::EventSlot::v1})
      record += ", " + slot_value(kind, slot, "0");
    const bool end = ev::is_end(kind.kind);  // as its begin
    if (!kind.text.empty() && !end) out += wrapped("/* " + std::string(kind.text) + " */", 3) + "\n";
    out += wrapped(signature + ") {", 4) + "\n  " + wrapped(record + ");", 6) + "\n}\n";
  }
  return out;
}

std::string python_functions() {
  std::string out;
  for (const ev::KindInfo& kind : ev::event_kinds()) {
    const std::string name = ev::name_of(kind.kind);
    if (ev::role_of(kind.kind) == ev::EventRole::library || name.starts_with("gpu_")) continue;
    std::string line = "events.def(\"" + name + "\", &" + function_of(kind.kind);
    if (!kind.lane) line += ", \"lane\"_a";
    for (const ev::FieldInfo& field : kind.fields) line += ", \"" + std::string(field.name) + "\"_a";
    out += wrapped(line + ");", 4) + "\n";
  }
  return out;
}

std::string manual_rows() {
  std::string out;
  for (const ev::KindInfo& kind : ev::event_kinds()) {
    out += "| " + std::to_string(static_cast<unsigned>(kind.kind)) + " | `" + ev::name_of(kind.kind) +
           "` | " + std::string(kind.lane_text) + " | " + ev::name_of(ev::detail_of(kind.kind)) + " |";
    for (const ev::EventSlot slot : {ev::EventSlot::a, ev::EventSlot::b, ev::EventSlot::c,
                                     ev::EventSlot::code, ev::EventSlot::v0, ev::EventSlot::v1}) {
      std::string cell;
      for (const ev::FieldInfo& field : kind.fields) {
        if (field.slot != slot) continue;
        cell += (cell.empty() ? "`" : ", `") + std::string(field.name) + "`";
        std::string_view type = field.type;
        if (type.starts_with("std::optional<")) type = type.substr(14, type.size() - 15);
        const bool plain = type.starts_with("std::") || type == "bool" || type == "double";
        if (type == "double") cell += " real";
        if (type.starts_with("plan::")) {
          cell += " " + std::string(type.substr(6)) + " (plan)";
        } else if (!plain) {
          cell += " " + std::string(type);
        }
        if (field.is_part()) {
          cell +=
              " bits " + std::to_string(field.shift) + "-" + std::to_string(field.shift + field.width - 1);
        }
        if (!field.unit.empty() && field.unit != "id" && field.unit != "count")
          cell += " (" + std::string(field.unit) + ")";
      }
      out += cell.empty() ? "  |" : " " + cell + " |";
    }
    out += "\n";
  }
  return out;
}

}  // namespace shardscope::test
