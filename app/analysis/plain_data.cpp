#include "app/analysis/plain_data.h"

#include <bit>
#include <nlohmann/json.hpp>

namespace shardscope::analysis {
namespace {

/// Receives JSON from the parser, one call per value.
class JsonReader {
 public:
  explicit JsonReader(PlainData& data) : data_(data) {}

  // The SAX interface of nlohmann::json, which requires these names.
  bool null() { return take(data_.add_none()); }
  bool boolean(bool value) { return take(data_.add(value)); }
  bool number_integer(std::int64_t value) { return take(data_.add(value)); }
  bool number_unsigned(std::uint64_t value) {
    return value <= INT64_MAX ? take(data_.add(static_cast<std::int64_t>(value)))
                              : take(data_.add(static_cast<double>(value)));
  }
  bool number_float(double value, const std::string& /*text*/) { return take(data_.add(value)); }
  bool string(std::string& value) { return take(data_.add_copy(value)); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*size*/) { return open(PlainData::Kind::dict); }
  bool key(std::string& value) { return take(data_.add_copy(value)); }
  bool end_object() { return close(); }
  bool start_array(std::size_t /*size*/) { return open(PlainData::Kind::list); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string& /*token*/, const std::exception& /*error*/) {
    throw std::invalid_argument("its JSON ends or is wrong at byte " + std::to_string(position));
  }

 private:
  bool take(PlainData::Id id) {
    if (open_.empty())
      data_.set_root(id);
    else
      data_.append(open_.back(), id);
    return true;
  }
  bool open(PlainData::Kind kind) {
    const PlainData::Id id = data_.add(kind);
    take(id);
    open_.push_back(id);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  PlainData& data_;
  std::vector<PlainData::Id> open_;
};

}  // namespace

PlainData::Value& PlainData::made(Kind kind) {
  // 24 bytes each, and as much for a list: some 400 MB. A recorder's buffer of 100,000 entries has 3 million.
  constexpr std::size_t kMost = std::size_t{1} << 23;
  if (values_.size() == kMost)
    throw std::invalid_argument("it has more than " + std::to_string(kMost) + " values");
  values_.emplace_back().kind = kind;
  return values_.back();
}

PlainData::Id PlainData::add_none() {
  made(Kind::none);
  return static_cast<Id>(values_.size() - 1);
}

PlainData::Id PlainData::add(bool value) {
  made(Kind::boolean).number = value ? 1 : 0;
  return static_cast<Id>(values_.size() - 1);
}

PlainData::Id PlainData::add(std::int64_t value) {
  made(Kind::integer).number = value;
  return static_cast<Id>(values_.size() - 1);
}

PlainData::Id PlainData::add(double value) {
  made(Kind::real).number = std::bit_cast<std::int64_t>(value);
  return static_cast<Id>(values_.size() - 1);
}

PlainData::Id PlainData::add_view(std::string_view text) {
  Value& value = made(Kind::text);
  value.chars = text.data();
  value.size = static_cast<std::uint32_t>(text.size());
  return static_cast<Id>(values_.size() - 1);
}

PlainData::Id PlainData::add_copy(std::string_view text) { return add_view(copies_.emplace_back(text)); }

PlainData::Id PlainData::add(Kind kind) {
  made(kind).size = static_cast<std::uint32_t>(items_.size());
  items_.emplace_back();
  return static_cast<Id>(values_.size() - 1);
}

std::span<const PlainData::Id> PlainData::items(Id id) const {
  const Value& value = values_[id];
  if (value.kind != Kind::list && value.kind != Kind::dict) return {};
  return items_[value.size];
}

std::optional<std::string_view> PlainData::text(Id id) const {
  const Value& value = values_[id];
  if (value.kind != Kind::text) return std::nullopt;
  return std::string_view(value.chars, value.size);
}

std::optional<std::int64_t> PlainData::integer(Id id) const {
  if (values_[id].kind != Kind::integer) return std::nullopt;
  return values_[id].number;
}

std::optional<bool> PlainData::boolean(Id id) const {
  if (values_[id].kind != Kind::boolean) return std::nullopt;
  return values_[id].number != 0;
}

std::optional<double> PlainData::real(Id id) const {
  if (values_[id].kind != Kind::real) return std::nullopt;
  return std::bit_cast<double>(values_[id].number);
}

std::optional<PlainData::Id> PlainData::find(Id dict, std::string_view key) const {
  if (values_[dict].kind != Kind::dict) return std::nullopt;
  const std::span<const Id> all = items(dict);
  for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
    if (text(all[i]) == key) return all[i + 1];
  }
  return std::nullopt;
}

PlainData read_plain_json(std::string_view text) {
  PlainData data;
  JsonReader reader(data);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader))
    throw std::invalid_argument("its JSON cannot be read");
  return data;
}

}  // namespace shardscope::analysis
