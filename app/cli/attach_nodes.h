// `attach` of a run over several nodes: the endpoint that its ranks connect to, and checks of its options.
#pragma once

#include <string>

#include "app/cli/retention_options.h"
#include "app/collector/collector.h"

namespace shardscope::cli {

struct NodeOptions {
  std::string
      folder;  ///< where the settings' folder is made, on a file system that all nodes have; empty: temporary
  std::string advertise;  ///< this node's name or address for other nodes; empty: its host name
};

/// The endpoint by which ranks of other nodes reach `bound`: "tcp://0.0.0.0:5711" becomes tcp://HOST:5711,
/// with `advertise` or else this machine's name. An endpoint with an address is unchanged, unless `advertise`
/// replaces it; so is ipc.
[[nodiscard]] std::string endpoint_for_nodes(const std::string& bound, const std::string& advertise);
/// Throws UserError (exit code 2) for options that contradict one another.
void check_nodes(const NodeOptions& nodes, const collector::CollectorOptions& collector,
                 const RetentionOptions& kept);

}  // namespace shardscope::cli
