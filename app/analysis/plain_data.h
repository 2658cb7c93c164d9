// Values of a Python pickle of plain data or of a JSON text: none, booleans, numbers, texts, lists and
// dictionaries. Values refer to each other by index: a value that a pickle references twice is stored once,
// and neither parsing nor destruction recurses, whatever the depth of nesting, even in cycles.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::analysis {

class PlainData {
 public:
  using Id = std::uint32_t;
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, list, dict };

  // Each throws std::invalid_argument if there are more values than the memory limit allows.
  [[nodiscard]] Id add_none();
  [[nodiscard]] Id add(bool value);
  [[nodiscard]] Id add(std::int64_t value);
  [[nodiscard]] Id add(double value);
  [[nodiscard]] Id add_copy(std::string_view text);
  /// Does not copy: the text must outlive this.
  [[nodiscard]] Id add_view(std::string_view text);
  /// kind: list or dict; a dictionary holds alternating keys and values, in order of insertion.
  [[nodiscard]] Id add(Kind kind);
  void append(Id to, Id item) { items_[values_[to].size].push_back(item); }
  void set_root(Id id) { root_ = id; }

  [[nodiscard]] Id root() const { return root_; }
  [[nodiscard]] Kind kind(Id id) const { return values_[id].kind; }
  /// Items of a list or dictionary; empty for other kinds.
  [[nodiscard]] std::span<const Id> items(Id id) const;
  [[nodiscard]] std::optional<std::string_view> text(Id id) const;
  [[nodiscard]] std::optional<std::int64_t> integer(Id id) const;
  [[nodiscard]] std::optional<bool> boolean(Id id) const;
  [[nodiscard]] std::optional<double> real(Id id) const;
  /// The value of a key; nullopt if the dictionary lacks it or `dict` is no dictionary.
  [[nodiscard]] std::optional<Id> find(Id dict, std::string_view key) const;

 private:
  struct Value {
    Kind kind = Kind::none;
    std::uint32_t size = 0;       ///< length of a text; for a list or dict its index in items_
    std::int64_t number = 0;      ///< a boolean, an integer, or the bits of a real
    const char* chars = nullptr;  ///< begin of a text
  };
  Value& made(Kind kind);

  std::vector<Value> values_;
  std::vector<std::vector<Id>> items_;
  std::deque<std::string> copies_;
  Id root_ = 0;
};

/// Parses a pickle of plain data, protocols 2 to 5, as written by PyTorch's C++ pickler and Python's pickle:
/// dictionaries, lists, tuples (read as lists), texts, numbers, booleans and None. Nothing is executed:
/// opcodes that import or call anything are rejected. Texts refer to `bytes`, which must outlive the result.
/// Throws std::invalid_argument: what, where.
[[nodiscard]] PlainData read_plain_pickle(std::string_view bytes);
/// Parses JSON. Throws std::invalid_argument.
[[nodiscard]] PlainData read_plain_json(std::string_view text);

}  // namespace shardscope::analysis
