// Values that a Python pickle of plain data or a JSON text holds: none, booleans, numbers, texts, lists and
// dictionaries. They refer to one another by number: what a pickle names twice is held once, and neither
// reading nor ending walks a value by recursion, however deep it is nested, if it holds itself even.
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

  // Each throws std::invalid_argument when there are more values than memory is given for.
  [[nodiscard]] Id add_none();
  [[nodiscard]] Id add(bool value);
  [[nodiscard]] Id add(std::int64_t value);
  [[nodiscard]] Id add(double value);
  [[nodiscard]] Id add_copy(std::string_view text);
  /// Not copied: what it is of must outlive this.
  [[nodiscard]] Id add_view(std::string_view text);
  /// kind: list or dict; a dictionary holds keys and values by turns, in their order.
  [[nodiscard]] Id add(Kind kind);
  void append(Id to, Id item) { items_[values_[to].size].push_back(item); }
  void set_root(Id id) { root_ = id; }

  [[nodiscard]] Id root() const { return root_; }
  [[nodiscard]] Kind kind(Id id) const { return values_[id].kind; }
  /// Items of a list or a dictionary; empty for anything else.
  [[nodiscard]] std::span<const Id> items(Id id) const;
  [[nodiscard]] std::optional<std::string_view> text(Id id) const;
  [[nodiscard]] std::optional<std::int64_t> integer(Id id) const;
  [[nodiscard]] std::optional<bool> boolean(Id id) const;
  [[nodiscard]] std::optional<double> real(Id id) const;
  /// The value of a key of a dictionary; nothing where it has none or is no dictionary.
  [[nodiscard]] std::optional<Id> find(Id dict, std::string_view key) const;

 private:
  struct Value {
    Kind kind = Kind::none;
    std::uint32_t size = 0;       ///< of a text; of a list the number of its items' vector
    std::int64_t number = 0;      ///< a boolean, an integer, or the bits of a real
    const char* chars = nullptr;  ///< of a text
  };
  Value& made(Kind kind);

  std::vector<Value> values_;
  std::vector<std::vector<Id>> items_;
  std::deque<std::string> copies_;
  Id root_ = 0;
};

/// A pickle of plain data, protocols 2 to 5: what PyTorch's C++ pickler and Python's pickle write of
/// dictionaries, lists, tuples (read as lists), texts, numbers, booleans and None. It is read, never run:
/// opcodes that import or call anything are refused. Texts stay in `bytes`, which must outlive the result.
/// Throws std::invalid_argument: what, where.
[[nodiscard]] PlainData read_plain_pickle(std::string_view bytes);
/// Throws std::invalid_argument.
[[nodiscard]] PlainData read_plain_json(std::string_view text);

}  // namespace shardscope::analysis
