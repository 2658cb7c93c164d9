// estimator.json: rows in bytes and as printed, header lines, parameter counts of live models.
#include <array>
#include <sstream>

#include "runtime/plan/estimator.h"
#include "tests/runtime/plan/golden.h"

namespace shardscope::golden {
namespace {

plan::EstimateInput input_of(const Json& golden) {
  plan::EstimateInput input;
  input.params = golden.at("params").get<std::int64_t>();
  input.largest_layer_params = golden.value("largest_layer_params", std::int64_t{0});
  input.gpus_per_node = golden.at("gpus_per_node").get<std::int64_t>();
  input.nodes = golden.at("nodes").get<std::int64_t>();
  input.additional_buffer_factor = golden.at("additional_buffer_factor").get<double>();
  const std::string formula = golden.at("formula").get<std::string>();
  if (formula == "deepspeed-0.19") {
    input.formula = plan::EstimateFormula::deepspeed_0_19;
  } else if (formula == "doc") {
    input.formula = plan::EstimateFormula::doc;
  } else {
    throw std::invalid_argument("formula \"" + formula + "\" is not known");
  }
  return input;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first);
}

/// The two figures of a printed row: " 2.78GB |   0.23GB | ...".
std::array<std::string, 2> figures(const std::string& line) {
  const std::size_t first = line.find("GB |");
  const std::size_t second = line.find("GB |", first + 4);
  return {trimmed(line.substr(0, first)), trimmed(line.substr(first + 4, second - first - 4))};
}

void check_estimate(const Json& golden, Report& report) {
  const std::string kind = golden.at("kind").get<std::string>();
  const std::string name = golden.at("id").get<std::string>() + " " + kind + " " +
                           golden.at("model").get<std::string>() + " " +
                           golden.at("formula").get<std::string>();
  const plan::EstimateInput input = input_of(golden);
  const bool zero3 = kind == "zero3";
  if (!zero3 && kind != "zero2")
    throw std::invalid_argument("kind is \"" + kind + "\"; it must be zero2 or zero3");
  const auto rows = zero3 ? plan::estimate_zero3(input) : plan::estimate_zero2(input);
  const auto printed = lines_of(zero3 ? plan::format_zero3(input) : plan::format_zero2(input));
  constexpr std::size_t kHeaderLines = 4;

  Json got = {{"rows", Json::array()}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [cpu, gpu] = figures(printed.at(kHeaderLines + i));
    Json row = {{"offload_optimizer", rows[i].offload_optimizer ? "cpu" : "none"},
                {"cpu_gib", cpu},
                {"gpu_gib", gpu},
                {"cpu_bytes", rows[i].cpu_bytes},
                {"gpu_bytes", rows[i].gpu_bytes}};
    row["offload_param"] = zero3 ? Json(rows[i].offload_param ? "cpu" : "none") : Json(nullptr);
    row["zero_init"] = zero3 ? Json(rows[i].zero_init ? 1 : 0) : Json(nullptr);
    got["rows"].push_back(std::move(row));
  }
  Json expected = {{"rows", golden.at("rows")}};
  if (golden.contains("header_lines")) {
    expected["header_lines"] = golden["header_lines"];
    got["header_lines"] = {printed.at(1), printed.at(2)};
  }
  if (compare(report, name, expected, got)) report.agree(name, std::to_string(rows.size()) + " rows");
}

/// Models that the repository knows by the same name.
void check_live(const Json& golden, Report& report) {
  const std::string model = golden.at("model").get<std::string>();
  plan::ModelPlan plan;
  try {
    plan = golden_model(model);
  } catch (const std::exception& error) {
    report.fail("live " + model, error.what());
    return;
  }
  const plan::EstimateInput input = plan::estimate_input(plan);
  bool same = compare(report, "live " + model + " zero2_model_to_params", golden.at("zero2_model_to_params"),
                      input.params);
  same &= compare(report, "live " + model + " zero3_model_to_params", golden.at("zero3_model_to_params"),
                  {input.params, input.largest_layer_params});
  if (same) report.agree("live " + model, "parameter counts");
}

}  // namespace

void check_estimator(const Json& file, Report& report) {
  std::size_t number = 0;
  for (const Json& golden : list_at(file, "cases")) {
    guarded(report, label_of(golden, "id", "case " + std::to_string(number++)),
            [&] { check_estimate(golden, report); });
  }
  if (!file.contains("live")) return;
  for (const Json& golden : list_at(file, "live")) {
    guarded(report, "live " + label_of(golden, "model", "?"), [&] { check_live(golden, report); });
  }
}

}  // namespace shardscope::golden
