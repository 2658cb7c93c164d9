// loss_scale.json: scale and hysteresis after each update.
#include <stdexcept>

#include "runtime/plan/loss_scale.h"
#include "tests/runtime/plan/golden.h"

namespace shardscope::golden {
namespace {

void check_scale_case(const Json& golden, Report& report) {
  const std::string name = golden.at("id").get<std::string>() + " " + golden.value("name", std::string());
  plan::LossScaleConfig config;
  config.loss_scale = golden.value("loss_scale", config.loss_scale);  // above 0: static
  config.initial_scale_power = golden.value("initial_scale_power", config.initial_scale_power);
  config.window = golden.value("loss_scale_window", config.window);
  config.hysteresis = golden.value("hysteresis", config.hysteresis);
  config.consecutive_hysteresis = golden.value("consecutive_hysteresis", config.consecutive_hysteresis);
  config.min_loss_scale = golden.value("min_loss_scale", config.min_loss_scale);
  plan::LossScaler scaler(config);

  Json got = {
      {"scale_after", Json::array()}, {"hysteresis_after", Json::array()}, {"raises_at_step", nullptr}};
  const std::string overflow = golden.at("overflow").get<std::string>();
  if (golden.value("steps", overflow.size()) != overflow.size()) {
    throw std::invalid_argument("steps is " + golden["steps"].dump() + ", but overflow has " +
                                std::to_string(overflow.size()));
  }
  for (std::size_t i = 0; i < overflow.size(); ++i) {
    if (overflow[i] != '0' && overflow[i] != '1') {
      throw std::invalid_argument("overflow holds '" + overflow.substr(i, 1) + "'; it must be 0s and 1s");
    }
    try {
      scaler.update(overflow[i] == '1');
    } catch (const plan::LossScaleError&) {
      got["raises_at_step"] = i;
      break;
    }
    got["scale_after"].push_back(scaler.scale());
    got["hysteresis_after"].push_back(scaler.hysteresis());
  }
  got["final_last_overflow_iter"] = scaler.last_overflow();
  got["final_cur_iter"] = scaler.iteration();
  Json expected = Json::object();
  for (const auto& [key, value] : got.items()) {
    if (golden.contains(key)) expected[key] = golden[key];
  }
  for (const auto& [key, value] : golden.items()) {
    if (key == "raises_at_step" && !expected.contains(key)) expected[key] = value;
  }
  Json compared = Json::object();
  for (const auto& [key, value] : expected.items()) compared[key] = got[key];
  if (compare(report, name, expected, compared)) {
    report.agree(name, std::to_string(got["scale_after"].size()) + " updates");
  }
}

}  // namespace

void check_loss_scale(const Json& file, Report& report) {
  std::size_t number = 0;
  for (const Json& golden : list_at(file, "cases")) {
    guarded(report, label_of(golden, "id", "case " + std::to_string(number++)),
            [&] { check_scale_case(golden, report); });
  }
}

}  // namespace shardscope::golden
