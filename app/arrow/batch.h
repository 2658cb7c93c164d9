// Builds a record batch row by row: typed cells, appended from left to right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/arrow/c_data.h"

namespace shardscope::arrow {

enum class ColumnType : std::uint8_t {
  int64,
  uint32,
  float64,
  boolean,
  text,
  word,  ///< a word of Column::words: dictionary-encoded, int32 indices
};

struct Column {
  std::string name;
  ColumnType type{};
  std::vector<std::string> words = {};  ///< the dictionary of a ColumnType::word column
};
using Schema = std::vector<Column>;

class Batch {
 public:
  /// Keeps a reference to `schema`, which must outlive the batch.
  explicit Batch(const Schema& schema);

  // Append the next cell of the row. Aborts where the column has another type: a programming error.
  Batch& integer(std::int64_t value);   ///< int64
  Batch& time(std::int64_t ns);         ///< int64; store::kOpen is null
  Batch& id(std::uint32_t value);       ///< uint32; kNoId is null
  Batch& number(double value);          ///< float64; NaN is null
  Batch& flag(bool value);              ///< boolean
  Batch& text(std::string_view value);  ///< text; bytes that are not UTF-8 become U+FFFD
  Batch& word(std::size_t index);       ///< word; an index past the end of the list is null
  Batch& null();                        ///< a column of any type
  void end_row();

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  /// Moves the columns into `out` as a struct array, without a copy; the batch is empty afterwards.
  void release_to(ArrowArray& out);

 private:
  struct Values {
    std::vector<std::byte> data;         ///< fixed-size values, boolean bits or the bytes of texts
    std::vector<std::int32_t> offsets;   ///< text columns: where each text begins, and the end
    std::vector<std::uint8_t> validity;  ///< one bit per row; empty while no value is null
    std::int64_t nulls = 0;
  };
  Values& next(ColumnType type);
  template <typename T>
  Batch& put(ColumnType type, T value, bool valid);
  void set_validity(Values& values, bool valid) const;
  static void export_column(const Column& column, Values values, std::size_t rows, ArrowArray& out);

  const Schema* schema_;
  std::vector<Values> values_;
  std::size_t rows_ = 0, cell_ = 0;
};

/// The schema as a struct. Owns copies of all names.
void export_schema(const Schema& schema, ArrowSchema& out);

}  // namespace shardscope::arrow
