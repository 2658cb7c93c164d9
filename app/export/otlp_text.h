// OTLP/JSON: the protobuf JSON mapping, with ids as hexadecimal digits and 64-bit integers as strings
// (opentelemetry-proto, docs/specification.md, "JSON Protobuf Encoding").
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shardscope::exporter {

/// Builds a list of KeyValue.
class OtlpAttributes {
 public:
  void text(std::string_view key, std::string_view value);
  void number(std::string_view key, std::int64_t value);
  void real(std::string_view key, double value);  ///< must be finite
  void flag(std::string_view key, bool value);
  [[nodiscard]] std::string json() const { return "[" + text_ + "]"; }

 private:
  void begin(std::string_view key);
  std::string text_;
};

struct OtlpIds {
  explicit OtlpIds(std::string_view run_id);
  /// 32 hexadecimal digits, never all 0: 16 of the run, then 16 of the step.
  [[nodiscard]] std::string trace(std::uint64_t step) const;

 private:
  std::uint64_t run_;
};

struct OtlpSpan {
  std::string trace_id;
  std::uint64_t id = 0;
  std::optional<std::uint64_t> parent;
  std::string name;
  std::int64_t begin_unix_ns = 0, end_unix_ns = 0;
  std::string attributes = "[]";
  bool failed = false;
  std::optional<std::pair<std::int64_t, const char*>> event{};  ///< time and name
};

/// Writes lines of TracesData: a new line for each resource and whenever a line exceeds `line_bytes`.
class OtlpLines {
 public:
  OtlpLines(std::ostream& out, std::size_t line_bytes, std::string_view version);
  /// Sets the resource of the spans that follow; `attributes`: from OtlpAttributes::json().
  void resource(std::string attributes);
  void span(const OtlpSpan& span);
  void flush();

 private:
  std::ostream& out_;
  std::size_t line_bytes_;
  std::string version_, resource_, spans_;
};

}  // namespace shardscope::exporter
