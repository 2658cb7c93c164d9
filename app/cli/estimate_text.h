// Output of `estimate`: tables for people, JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/estimator.h"
#include "runtime/plan/paper_tables.h"
#include "runtime/plan/stage_estimate.h"

namespace shardscope::cli {

/// DeepSpeed's two estimators.
enum class EstimatedStage : std::uint8_t { zero2, zero3 };
/// Rows of ZeRO-2 or ZeRO-3. Rows with offload list the pinned part of host memory, per node.
[[nodiscard]] nlohmann::json estimate_json(const plan::EstimateInput& input,
                                           const std::vector<plan::EstimateRow>& rows, EstimatedStage stage,
                                           std::int64_t accumulation_steps);
/// One line per offload that pins memory: "pinned, a part of per CPU: ...".
[[nodiscard]] std::string pinned_text(const plan::EstimateInput& input, EstimatedStage stage,
                                      std::int64_t accumulation_steps);

[[nodiscard]] std::string stages_text(const plan::StageEstimateInput& input,
                                      const std::vector<plan::StageEstimate>& rows,
                                      const std::optional<plan::TransformerShape>& activations);
[[nodiscard]] nlohmann::json stages_json(const std::vector<plan::StageEstimate>& rows,
                                         const std::optional<plan::TransformerShape>& activations);

[[nodiscard]] std::string activations_text(const plan::TransformerShape& shape);
[[nodiscard]] nlohmann::json activations_json(const plan::TransformerShape& shape);

[[nodiscard]] std::string zero_tables_text(const plan::ZeroTable1& table1,
                                           const std::vector<plan::ZeroTable2Row>& table2);
[[nodiscard]] nlohmann::json zero_tables_json(const plan::ZeroTable1& table1,
                                              const std::vector<plan::ZeroTable2Row>& table2);

[[nodiscard]] std::string infinity_text(const std::vector<plan::InfinityRow>& rows);
[[nodiscard]] nlohmann::json infinity_json(const std::vector<plan::InfinityRow>& rows);

}  // namespace shardscope::cli
