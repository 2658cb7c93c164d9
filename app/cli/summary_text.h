// The text of `summary` on a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/analysis/summary.h"
#include "app/store/store.h"

namespace shardscope::cli {

[[nodiscard]] std::string summary_text(const analysis::Summary& summary);
/// "4.6491 -> 4.5018": of the first step and of the last with a loss; a dash where none has.
[[nodiscard]] std::string loss_text(const std::vector<double>& values);
/// Last line of a program that recorded or received a run: "1234 events of 4 ranks, 0 dropped, loss 4.6491
/// -> 4.5018; recorded to run.zscope; next: shardscope summary run.zscope". `record`: empty where it was not
/// recorded.
[[nodiscard]] std::string closing_text(const store::Store& store, std::uint64_t events,
                                       const std::string& record);
/// For a node's collector: "12 events were not passed on to tcp://head:5711 ...".
[[nodiscard]] std::string shed_text(std::uint64_t events, const std::string& upstream);
[[nodiscard]] std::string findings_text(const std::vector<analysis::Finding>& findings, bool simulated);

}  // namespace shardscope::cli
