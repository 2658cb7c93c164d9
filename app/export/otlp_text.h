// OTLP's JSON: protobuf's mapping with ids in hexadecimal digits and 64-bit integers as text
// (opentelemetry-proto, docs/specification.md, "JSON Protobuf Encoding").
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shardscope::exporter {

/// A list of KeyValue.
class OtlpAttributes {
 public:
  void text(std::string_view key, std::string_view value);
  void number(std::string_view key, std::int64_t value);
  void real(std::string_view key, double value);  ///< finite
  void flag(std::string_view key, bool value);
  [[nodiscard]] std::string json() const { return "[" + text_ + "]"; }

 private:
  void begin(std::string_view key);
  std::string text_;
};

struct OtlpIds {
  explicit OtlpIds(std::string_view run_id);
  /// 32 digits, never all 0: those of the run, then those of the step.
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
  std::optional<std::pair<std::int64_t, const char*>> event{};  ///< when, what
};

/// Lines of TracesData: a new one for each resource, and where one would grow long.
class OtlpLines {
 public:
  OtlpLines(std::ostream& out, std::size_t line_bytes, std::string_view version);
  /// Resource of the spans that follow; `attributes` as of OtlpAttributes.
  void resource(std::string attributes);
  void span(const OtlpSpan& span);
  void flush();

 private:
  std::ostream& out_;
  std::size_t line_bytes_;
  std::string version_, resource_, spans_;
};

}  // namespace shardscope::exporter
