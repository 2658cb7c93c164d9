#include "runtime/plan/paper_tables.h"

#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace shardscope::plan {
namespace {

/// "7.5" for "7.50", "30" for "30.0".
std::string without_trailing_zeros(std::string decimal) {
  decimal.erase(decimal.find_last_not_of('0') + 1);
  if (decimal.back() == '.') decimal.pop_back();
  return decimal;
}

}  // namespace

ZeroTable1 zero_table1(const std::vector<double>& params, const std::vector<std::int64_t>& ranks) {
  for (const double model : params) {
    if (!(model >= 1)) {
      throw std::invalid_argument("ZeRO table: a model of " + std::to_string(model) +
                                  " parameters; give at least 1");
    }
  }
  ZeroTable1 table;
  table.params = params;
  for (const std::int64_t degree : ranks) {
    if (degree < 1) {
      throw std::invalid_argument("ZeRO table: data parallelism of " + std::to_string(degree) +
                                  "; give at least 1");
    }
    ZeroTable1Row row{degree, {}};
    for (const double model : params) {
      std::array<double, 3> cell{};
      for (std::uint32_t stage = 1; stage <= 3; ++stage) {
        cell[stage - 1] = state_expression(stage, kMixedPrecision).bytes(model, static_cast<double>(degree));
      }
      row.bytes.push_back(cell);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<ZeroTable2Row> zero_table2(double memory_bytes, std::int64_t data_parallel) {
  std::vector<ZeroTable2Row> rows;
  for (const std::int64_t model_parallel : {1, 2, 4, 8, 16}) {
    ZeroTable2Row row{model_parallel, data_parallel * model_parallel, {}};
    for (std::uint32_t stage = 0; stage <= 3; ++stage) {
      row.params[stage] = largest_model(memory_bytes, stage, static_cast<double>(data_parallel),
                                        static_cast<double>(model_parallel));
    }
    rows.push_back(row);
  }
  return rows;
}

std::string rounded_half_up(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, std::floor(value * scale + 0.5) / scale);
  return text;
}

std::string as_in_table1(double gigabytes) {
  if (gigabytes >= 100) {
    char text[64];
    std::snprintf(text, sizeof text, "%.0f", std::floor(gigabytes));
    return text;
  }
  return without_trailing_zeros(rounded_half_up(gigabytes, gigabytes >= 2 ? 1 : 2));
}

std::string as_in_table2(double params, std::int64_t model_parallel) {
  const auto groups = static_cast<double>(model_parallel);
  const std::string group = rounded_half_up(params / groups / 1e9, 1);
  return without_trailing_zeros(rounded_half_up(std::stod(group) * groups, 1));
}

InfinityRow infinity_row(const TransformerShape& shape) noexcept {
  return {shape,
          transformer_params(shape),
          transformer_state_bytes(shape),
          activation_checkpoint_bytes(shape),
          model_state_working_memory(shape),
          activation_working_memory(shape)};
}

std::vector<InfinityRow> infinity_table() {
  std::vector<InfinityRow> rows;
  for (const TransformerShape& shape : {TransformerShape{.layers = 80, .hidden = 10240, .heads = 128},
                                        TransformerShape{.layers = 100, .hidden = 20480, .heads = 160},
                                        TransformerShape{.layers = 128, .hidden = 25600, .heads = 256},
                                        TransformerShape{.layers = 195, .hidden = 65536, .heads = 512},
                                        TransformerShape{.layers = 315, .hidden = 163840, .heads = 1024}}) {
    rows.push_back(infinity_row(shape));
  }
  return rows;
}

}  // namespace shardscope::plan
