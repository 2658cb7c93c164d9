// Rows as the Arrow C data interface lays them out.
#include "app/arrow/batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/store/lane.h"
#include "instrumentation/event.h"

namespace shardscope::arrow {
namespace {

const Schema kSchema{{"time", ColumnType::int64},    {"rank", ColumnType::uint32},
                     {"value", ColumnType::float64}, {"flag", ColumnType::boolean},
                     {"name", ColumnType::text},     {"word", ColumnType::word, {"zero", "one"}}};

std::string_view text_at(const ArrowArray& array, std::size_t row) {
  const auto* offsets = static_cast<const std::int32_t*>(array.buffers[1]);
  const auto* data = static_cast<const char*>(array.buffers[2]);
  return {data + offsets[row], data + offsets[row + 1]};
}
bool is_valid(const ArrowArray& array, std::size_t row) {
  const auto* bits = static_cast<const std::uint8_t*>(array.buffers[0]);
  return bits == nullptr || (bits[row / 8] >> row % 8 & 1) != 0;
}

TEST(Batch, HasValuesAndNullsWhereTheInterfaceWantsThem) {
  Batch batch(kSchema);
  constexpr std::size_t kRows = 20;  // more than a byte of validity
  for (std::size_t row = 0; row < kRows; ++row) {
    const bool null = row % 3 == 1;
    batch.time(null ? store::kOpen : static_cast<std::int64_t>(row))
        .id(null ? instrumentation::kNoId : static_cast<std::uint32_t>(row))
        .number(null ? std::nan("") : 0.5 * static_cast<double>(row))
        .flag(row % 2 == 0)
        .text(std::string(row, 'x'))
        .word(null ? 7 : row % 2)
        .end_row();
  }
  ArrowArray array{};
  batch.release_to(array);
  EXPECT_EQ(batch.rows(), 0U);
  ASSERT_EQ(array.length, static_cast<std::int64_t>(kRows));
  ASSERT_EQ(array.n_children, 6);
  for (std::size_t row = 0; row < kRows; ++row) {
    const bool null = row % 3 == 1;
    for (const int column : {0, 1, 2, 5}) EXPECT_EQ(is_valid(*array.children[column], row), !null) << row;
    EXPECT_TRUE(is_valid(*array.children[4], row));
    EXPECT_EQ(text_at(*array.children[4], row).size(), row);
    const auto* flags = static_cast<const std::uint8_t*>(array.children[3]->buffers[1]);
    EXPECT_EQ((flags[row / 8] >> row % 8 & 1) != 0, row % 2 == 0);
    if (null) continue;
    EXPECT_EQ(static_cast<const std::int64_t*>(array.children[0]->buffers[1])[row],
              static_cast<std::int64_t>(row));
    EXPECT_EQ(static_cast<const std::uint32_t*>(array.children[1]->buffers[1])[row],
              static_cast<std::int64_t>(row));
    EXPECT_EQ(static_cast<const double*>(array.children[2]->buffers[1])[row], 0.5 * static_cast<double>(row));
    EXPECT_EQ(static_cast<const std::int32_t*>(array.children[5]->buffers[1])[row],
              static_cast<std::int32_t>(row % 2));
  }
  EXPECT_EQ(array.children[0]->null_count, 7);
  ASSERT_NE(array.children[5]->dictionary, nullptr);
  EXPECT_EQ(text_at(*array.children[5]->dictionary, 1), "one");
  array.release(&array);
  EXPECT_EQ(array.release, nullptr) << "a released structure is marked";
}

TEST(Batch, BytesThatAreNoUtf8AreReplaced) {
  const Schema schema{{"name", ColumnType::text}};
  Batch batch(schema);
  batch.text("a\xFFz").end_row();
  ArrowArray array{};
  batch.release_to(array);
  EXPECT_EQ(text_at(*array.children[0], 0), "a\uFFFDz");
  array.release(&array);
}

TEST(Batch, AnExportedSchemaOwnsItsNames) {
  ArrowSchema exported{};
  {
    const Schema schema = kSchema;
    export_schema(schema, exported);
  }
  ASSERT_EQ(exported.n_children, 6);
  EXPECT_STREQ(exported.format, "+s");
  const char* const formats[] = {"l", "I", "g", "b", "u", "i"};
  for (int i = 0; i < 6; ++i) EXPECT_STREQ(exported.children[i]->format, formats[i]);
  EXPECT_STREQ(exported.children[4]->name, "name");
  EXPECT_STREQ(exported.children[5]->dictionary->format, "u");
  exported.release(&exported);
}

}  // namespace
}  // namespace shardscope::arrow
