#include "app/cli/attach_nodes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "app/cli/verb.h"
#include "instrumentation/sockets.h"

namespace shardscope::cli {
namespace {

constexpr const char* kTcp = "tcp://";

std::string own_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "localhost";
}

bool is_wildcard(const std::string& host) {
  return host == "*" || host == "0.0.0.0" || host == "[::]" || host == "::";
}

}  // namespace

std::string endpoint_for_nodes(const std::string& bound, const std::string& advertise) {
  if (!bound.starts_with(kTcp)) return bound;
  const std::string address = bound.substr(std::string_view(kTcp).size());
  const std::size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  if (advertise.empty() && !is_wildcard(host)) return bound;
  const std::string named = advertise.empty() ? own_name() : advertise;
  const bool bare_ipv6 = named.find(':') != std::string::npos && named.front() != '[';
  return kTcp + (bare_ipv6 ? "[" + named + "]" : named) + address.substr(colon);
}

void check_nodes(const NodeOptions& nodes, const collector::CollectorOptions& collector,
                 const RetentionOptions& kept) {
  if (!nodes.folder.empty() && instrumentation::is_local(collector.listen)) {
    throw UserError(fmt::format("--folder {}: is for ranks on other nodes, which cannot reach {}; give "
                                "--listen tcp://0.0.0.0:PORT "
                                "as well, with --keys (docs/attach.md, several nodes)",
                                nodes.folder, collector.listen),
                    2);
  }
  if (collector.upstream.empty()) return;
  if (collector.run_id.empty()) {
    throw UserError(
        fmt::format(
            "--upstream {}: ranks of all nodes are one run by its name; give --run-id NAME here and to the "
            "`shardscope attach` that listens there, the same to both",
            collector.upstream),
        2);
  }
  if (!kept.detail.raise.empty()) {
    throw UserError(
        fmt::format("--raise-detail is an option of the recorder at {}: what ranks emit is set there",
                    collector.upstream),
        2);
  }
}

}  // namespace shardscope::cli
