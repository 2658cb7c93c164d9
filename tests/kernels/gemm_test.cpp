// The matrix product itself, on every instruction set: transposes, edges of tiles and blocks, leading
// dimensions wider than the matrices, and that no bit of an element depends on where it lies.
#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <array>
#include <limits>

#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using cpu::Gemm;
using cpu::Trans;
using GemmTest = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(GemmTest);

struct ProductSize {
  std::int64_t m, n, k;
};
// Around the tile (8 x 48), the strip of a transposed operand (64), the segment and the block of depth (64,
// 512) and the blocks of columns (192, 384).
constexpr std::array<ProductSize, 12> kProducts{
    ProductSize{1, 1, 1}, {7, 16, 3},     {8, 48, 64},     {9, 49, 65},    {63, 47, 130}, {64, 33, 512},
    {65, 97, 513},        {130, 200, 70}, {20, 401, 1100}, {193, 385, 65}, {3, 769, 9},   {72, 15, 1030}};

/// A stored matrix of rows x columns in the middle of NaNs, `gap` behind every row.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t gap, unsigned seed)
      : columns_(columns), ld_(columns + gap), data_(at(kMargin * 2 + rows * ld_), kNaN) {
    const Doubles values = random_doubles(rows * columns, seed);
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      (*this)(i / columns, i % columns) = static_cast<float>(values[at(i)]);
    }
  }
  float& operator()(std::int64_t row, std::int64_t column) { return data_[at(kMargin + row * ld_ + column)]; }
  float operator()(std::int64_t row, std::int64_t column) const {
    return data_[at(kMargin + row * ld_ + column)];
  }
  [[nodiscard]] float* data() { return data_.data() + kMargin; }
  [[nodiscard]] const float* data() const { return data_.data() + kMargin; }
  [[nodiscard]] std::int64_t ld() const { return ld_; }
  /// Whether what is no element is as it was.
  [[nodiscard]] bool margins_untouched() const {
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const std::int64_t place = static_cast<std::int64_t>(i) - kMargin;
      const bool inside = place >= 0 && i + at(kMargin) < data_.size() && place % ld_ < columns_;
      if (!inside && !std::isnan(data_[i])) return false;
    }
    return true;
  }

 private:
  static constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  static constexpr std::int64_t kMargin = 37;  // an odd one: nothing is aligned
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::int64_t columns_, ld_;
  std::vector<float> data_;
};

Matrix stored(std::int64_t rows, std::int64_t columns, Trans trans, unsigned seed) {
  return trans == Trans::no ? Matrix(rows, columns, 5, seed) : Matrix(columns, rows, 3, seed);
}
float element(const Matrix& x, Trans trans, std::int64_t row, std::int64_t column) {
  return trans == Trans::no ? x(row, column) : x(column, row);
}

Gemm shape_of(const ProductSize& s, Trans trans_a, Trans trans_b, const Matrix& a, const Matrix& b,
              const Matrix& c) {
  return {.trans_a = trans_a,
          .trans_b = trans_b,
          .m = s.m,
          .n = s.n,
          .k = s.k,
          .lda = a.ld(),
          .ldb = b.ld(),
          .ldc = c.ld()};
}

TEST_P(GemmTest, AgreesWithSumsInDouble) {
  for (const ProductSize& s : kProducts) {
    for (const int kind : {0, 1, 2, 3}) {
      const Trans trans_a = kind % 2 == 0 ? Trans::no : Trans::yes;
      const Trans trans_b = kind / 2 == 0 ? Trans::no : Trans::yes;
      const Matrix a = stored(s.m, s.k, trans_a, 1);
      const Matrix b = stored(s.k, s.n, trans_b, 2);
      const Matrix bias(1, s.n, 0, 3);
      const bool with_bias = kind % 2 == 0;
      const Matrix before(s.m, s.n, 7, 4);
      Matrix c = before;
      Gemm shape = shape_of(s, trans_a, trans_b, a, b, c);
      shape.add = kind / 2 == 0;
      cpu::gemm(shape, a.data(), b.data(), c.data(), with_bias ? bias.data() : nullptr);
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t j = 0; j < s.n; ++j) {
          double sum = (shape.add ? static_cast<double>(before(i, j)) : 0.0) +
                       (with_bias ? static_cast<double>(bias(0, j)) : 0.0);
          double magnitude = std::fabs(sum);
          for (std::int64_t k = 0; k < s.k; ++k) {
            const double product = static_cast<double>(element(a, trans_a, i, k)) *
                                   static_cast<double>(element(b, trans_b, k, j));
            sum += product;
            magnitude += std::fabs(product);
          }
          // k products and up to two more terms in fp32, in any order: (k + 2) 2^-24 of the magnitudes bounds
          // the worst case.
          const double bound = static_cast<double>(s.k + 2) * 0x1p-24 * magnitude;
          ASSERT_LE(std::fabs(static_cast<double>(c(i, j)) - sum), bound)
              << s.m << 'x' << s.n << 'x' << s.k << " kind " << kind << " at " << i << ", " << j;
        }
      }
      EXPECT_TRUE(c.margins_untouched()) << s.m << 'x' << s.n << 'x' << s.k << " kind " << kind;
    }
  }
}

TEST_P(GemmTest, NoBitDependsOnThreadsOrOnTheRowsAround) {
  const ProductSize whole{150, 100, 600};
  for (const Trans trans_a : {Trans::no, Trans::yes}) {
    const Matrix a = stored(whole.m, whole.k, trans_a, 5);
    const Matrix b = stored(whole.k, whole.n, Trans::yes, 6);
    Matrix c(whole.m, whole.n, 0, 7);
    const Gemm shape = shape_of(whole, trans_a, Trans::yes, a, b, c);
    cpu::gemm(shape, a.data(), b.data(), c.data(), nullptr);
    if (cpu::vector_kernels().gemm == nullptr) continue;  // oneDNN's order is its own
    Matrix on_three(whole.m, whole.n, 0, 8);
    Gemm shared = shape;
    shared.threads = 3;
    cpu::gemm(shared, a.data(), b.data(), on_three.data(), nullptr);
    Matrix rows(5, whole.n, 0, 9);
    Gemm part = shape;
    part.m = 5;
    const std::int64_t first = 71;
    cpu::gemm(part, a.data() + first * (trans_a == Trans::no ? a.ld() : 1), b.data(), rows.data(), nullptr);
    for (std::int64_t i = 0; i < whole.m; ++i) {
      for (std::int64_t j = 0; j < whole.n; ++j) {
        ASSERT_EQ(c(i, j), on_three(i, j)) << i << ", " << j;
        if (i >= first && i < first + part.m) {
          ASSERT_EQ(c(i, j), rows(i - first, j)) << i << ", " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardscope::kernels::test
