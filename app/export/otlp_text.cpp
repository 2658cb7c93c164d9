#include "app/export/otlp_text.h"

#include <array>
#include <charconv>
#include <ostream>
#include <stdexcept>

#include "app/export/json_text.h"

namespace shardscope::exporter {
namespace {

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  std::string out(digits.data(), end);
  return std::string(16 - out.size(), '0') + out;
}

/// FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

void OtlpAttributes::begin(std::string_view key) {
  text_ += text_.empty() ? "{\"key\":" : ",{\"key\":";
  append_json(text_, key);
  text_ += ",\"value\":{";
}

void OtlpAttributes::text(std::string_view key, std::string_view value) {
  begin(key);
  text_ += "\"stringValue\":";
  append_json(text_, value);
  text_ += "}}";
}

void OtlpAttributes::number(std::string_view key, std::int64_t value) {
  begin(key);
  text_ += "\"intValue\":\"" + std::to_string(value) + "\"}}";
}

void OtlpAttributes::real(std::string_view key, double value) {
  begin(key);
  text_ += "\"doubleValue\":";
  if (!append_json(text_, value)) text_ += "0";
  text_ += "}}";
}

void OtlpAttributes::flag(std::string_view key, bool value) {
  begin(key);
  text_ += value ? "\"boolValue\":true}}" : "\"boolValue\":false}}";
}

OtlpIds::OtlpIds(std::string_view run_id) : run_(hash_of(run_id)) {}

std::string OtlpIds::trace(std::uint64_t step) const {
  // step + 1: with a run hash of 0 the id of step 0 would be all zeros, which is invalid.
  return hexadecimal(run_) + hexadecimal(step == UINT64_MAX ? step : step + 1);
}

OtlpLines::OtlpLines(std::ostream& out, std::size_t line_bytes, std::string_view version)
    : out_(out), line_bytes_(line_bytes), version_(version) {}

void OtlpLines::resource(std::string attributes) {
  flush();
  resource_ = std::move(attributes);
}

void OtlpLines::span(const OtlpSpan& span) {
  spans_ += spans_.empty() ? "{\"traceId\":\"" : ",{\"traceId\":\"";
  spans_ += span.trace_id + "\",\"spanId\":\"" + hexadecimal(span.id) + "\"";
  if (span.parent) spans_ += ",\"parentSpanId\":\"" + hexadecimal(*span.parent) + "\"";
  spans_ += ",\"name\":";
  append_json(spans_, span.name);
  spans_ += ",\"kind\":1,\"startTimeUnixNano\":\"" + std::to_string(span.begin_unix_ns) +
            "\",\"endTimeUnixNano\":\"" + std::to_string(span.end_unix_ns) +
            "\",\"attributes\":" + span.attributes;
  if (span.event) {
    spans_ += ",\"events\":[{\"timeUnixNano\":\"" + std::to_string(span.event->first) + "\",\"name\":";
    append_json(spans_, span.event->second);
    spans_ += "}]";
  }
  if (span.failed) spans_ += ",\"status\":{\"code\":2}";
  spans_ += "}";
  if (spans_.size() > line_bytes_) flush();
}

void OtlpLines::flush() {
  if (spans_.empty()) return;  // never write a message without spans
  std::string line = "{\"resourceSpans\":[{\"resource\":{\"attributes\":" + resource_ +
                     "},\"scopeSpans\":[{\"scope\":{\"name\":\"shardscope\"";
  if (!version_.empty()) {
    line += ",\"version\":";
    append_json(line, version_);
  }
  line += "},\"spans\":[" + spans_ + "]}]}]}\n";
  spans_.clear();
  out_.write(line.data(), static_cast<std::streamsize>(line.size()));
  if (!out_) throw std::runtime_error("OTLP: cannot write it; the disk may be full");
}

}  // namespace shardscope::exporter
