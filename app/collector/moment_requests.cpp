#include "app/collector/moment_requests.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "app/collector/moment_request.h"
#include "app/collector/now.h"

namespace shardscope::collector {

void MomentRequests::take_of_viewer(const wire::Text& request, const std::string& by) {
  auto moment = moment_of_request(request.text);
  if (!moment) {
    problems_.reject("value", "a viewer", "it asks to keep a moment of no kind");
    return;
  }
  moment->at_ns = request.at_ns == 0 ? messages_.clock_now() : std::min(request.at_ns, messages_.clock_now());
  moment->text = requested_text(moment->text, by);
  ask_nodes(*moment);
  board_.ask_to_keep(std::move(*moment));
}

void MomentRequests::take_from_above(const wire::RankCommand& command) {
  std::optional<store::Moment> moment = moment_of_request(command.text);
  if (!moment) {
    problems_.reject("value", "the collector above", "it asks to keep a moment of no kind");
    return;
  }
  moment->at_ns = command.at_ns == 0 ? messages_.clock_now() : std::min(command.at_ns, messages_.clock_now());
  if (command.until_ns > moment->at_ns)
    moment->lasts_until_ns = std::min(command.until_ns, messages_.clock_now());
  moment->step = command.step;
  moment->rank = command.of_rank;
  ask_nodes(*moment);
  // Without moments here there is no reply: the sender is connected to another collector.
  if (options_.record_path.empty() || !options_.retention.limited() || options_.retention.moments == 0)
    return;
  board_.ask_to_keep(*std::move(moment));
}

void MomentRequests::take_node_requests() {
  for (const store::Moment& moment : board_.take_node_requests()) ask_nodes(moment);
}

void MomentRequests::ask_nodes(const store::Moment& moment) {
  if (!passed_.take(moment, now_s())) return;
  const std::vector<std::string> missed = down_.ask_nodes_to_keep(moment);
  if (missed.empty() || !passed_.may_warn(now_s())) return;
  messages_.record(
      0, instrumentation::Severity::warning,
      "the collector of node " + missed.front() +
          (missed.size() > 1 ? " and those of " + std::to_string(missed.size() - 1) + " more" : "") +
          " could not be asked to keep the events around " + moment.kind + ": not reached");
}

}  // namespace shardscope::collector
