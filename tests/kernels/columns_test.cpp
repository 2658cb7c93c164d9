#include "kernels/columns.h"

#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using Columns = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(Columns);

const MatrixPart kParts[] = {{70, 10, 0}, {67, 10, 3}, {4, 10, 2}, {8, 10, 7}, {3000, 37, 36}, {5, 1, 0}};

TEST_P(Columns, SumsOfAbsoluteValues) {
  for (const MatrixPart& part : kParts) {
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(part.elems, 5, -3, 3), type);
      std::vector<float> sums(static_cast<std::size_t>(part.columns), -1.0F);
      column_abs_sums(exec, sums.data(), x, part);
      // The same additions in the same order: no bit differs.
      std::vector<float> expected(sums.size(), 0.0F);
      for (std::int64_t i = 0; i < part.elems; ++i) {
        expected[static_cast<std::size_t>((part.first_column + i) % part.columns)] +=
            std::abs(static_cast<float>(x.get(i)));
      }
      EXPECT_EQ(sums, expected);
    }
  }
}

TEST_P(Columns, TakenAndPutBack) {
  for (const MatrixPart& part : kParts) {
    std::vector<std::int32_t> chosen;
    for (std::int32_t column = 0; column < part.columns; column += 3) chosen.push_back(column);
    const auto count = static_cast<std::int64_t>(chosen.size());
    for (const DType type : kAllTypes) {
      const Array x(random_doubles(part.elems, 6), type);
      const std::int64_t n = elems_in_columns(part, chosen.data(), count);
      Array taken(n, type);
      take_columns(exec, taken, x, part, chosen.data(), count);
      std::int64_t number = 0;
      Doubles expected(static_cast<std::size_t>(part.elems), 0.0);
      for (std::int64_t i = 0; i < part.elems; ++i) {
        if ((part.first_column + i) % part.columns % 3 != 0) continue;
        ASSERT_LT(number, n);
        EXPECT_EQ(taken.get(number++), x.get(i));
        expected[static_cast<std::size_t>(i)] = x.get(i);
      }
      EXPECT_EQ(number, n);
      Array back(Doubles(static_cast<std::size_t>(part.elems), 0.0), type);
      put_columns(exec, back, taken, part, chosen.data(), count);
      EXPECT_EQ(back.doubles(), expected);
    }
  }
}

TEST(ColumnsErrors, FirstColumnOutside) {
  float sum = 0;
  EXPECT_THROW(column_abs_sums(Exec{}, &sum, {&sum, DType::f32}, {1, 3, 3}), KernelError);
}

}  // namespace
}  // namespace shardscope::kernels::test
