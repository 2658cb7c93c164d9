#include "tests/kernels/support.h"

namespace shardscope::kernels::test {
namespace {

using Embedding = OnEveryIsa;
SHARDSCOPE_ON_EVERY_ISA(Embedding);

constexpr std::int64_t kRows = 11;

std::vector<std::int32_t> indices(std::int64_t N) {
  std::vector<std::int32_t> index(static_cast<std::size_t>(N));
  // Row 4 is never read, row 7 often.
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::size_t r = i * 5 % static_cast<std::size_t>(kRows);
    index[i] = static_cast<std::int32_t>(r == 4 || i % 3 == 0 ? 7 : r);
  }
  return index;
}

TEST_P(Embedding, ForwardSetsAndAdds) {
  for (const std::int64_t C : {1, 3, 17, 30}) {
    for (const DType type : kAllTypes) {
      const std::int64_t N = 13;
      const auto index = indices(N);
      const Array table(random_doubles(kRows * C, 1), type);
      const Array before(random_doubles(N * C, 2), type);
      Array set = before;
      Array sum = before;
      embedding_forward(exec, set, table, index.data(), N, C, Write::set);
      embedding_forward(exec, sum, table, index.data(), N, C, Write::add);
      for (std::int64_t i = 0; i < N * C; ++i) {
        const double row = table.get(index[static_cast<std::size_t>(i / C)] * C + i % C);
        ASSERT_EQ(set.get(i), row);
        Array want(1, type);
        want.set(0, static_cast<float>(before.get(i)) + static_cast<float>(row));
        ASSERT_EQ(sum.get(i), want.get(0));
      }
    }
  }
}

TEST_P(Embedding, BackwardSumsInOrderAndRoundsOnce) {
  for (const std::int64_t C : {1, 7, 30}) {
    for (const std::int64_t N : {1, 200}) {
      for (const DType type : kAllTypes) {
        for (const Write write : {Write::set, Write::add}) {
          const auto index = indices(N);
          const Array dy(random_doubles(N * C, 3), type);
          Array dtable(random_doubles(kRows * C, 4), type);
          std::vector<float> want(static_cast<std::size_t>(kRows * C));
          for (std::int64_t i = 0; i < kRows * C; ++i) {
            want[static_cast<std::size_t>(i)] =
                write == Write::add ? static_cast<float>(dtable.get(i)) : 0.0F;
          }
          for (std::int64_t i = 0; i < N * C; ++i) {
            want[static_cast<std::size_t>(index[static_cast<std::size_t>(i / C)] * C + i % C)] +=
                static_cast<float>(dy.get(i));
          }
          embedding_backward(exec, dtable, dy, index.data(), N, kRows, C, write);
          for (std::int64_t i = 0; i < kRows * C; ++i) {
            Array once(1, type);
            once.set(0, want[static_cast<std::size_t>(i)]);
            ASSERT_EQ(dtable.get(i), once.get(0)) << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardscope::kernels::test
