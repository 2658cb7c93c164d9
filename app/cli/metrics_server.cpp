#include "app/cli/metrics_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <charconv>
#include <mutex>
#include <thread>
#include <utility>

#include "app/cli/verb.h"

namespace shardscope::cli {

struct MetricsServer::State {
  httplib::Server server;
  std::mutex mutex;  ///< protects `text`
  std::string text = "# EOF\n";
  std::string url;
  std::thread thread;
};

MetricsServer::MetricsServer(const std::string& address) : state_(std::make_unique<State>()) {
  const std::size_t colon = address.rfind(':');
  int port = -1;
  if (colon != std::string::npos && colon > 0) {
    const char* end = address.data() + address.size();
    const auto read = std::from_chars(address.data() + colon + 1, end, port);
    if (read.ec != std::errc() || read.ptr != end || port > 65535) port = -1;
  }
  if (port < 0)
    throw UserError(fmt::format("--prometheus {}: is not HOST:PORT; give an address of this machine, such as "
                                "127.0.0.1:9464",
                                address),
                    2);
  std::string host = address.substr(0, colon);
  const std::string shown = host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);  // IPv6
  httplib::Server& server = state_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(2); };  // NOLINT: httplib owns and deletes it
  server.set_read_timeout(5);
  server.set_write_timeout(5);
  server.set_payload_max_length(4096);
  server.Get("/metrics", [state = state_.get()](const httplib::Request&, httplib::Response& response) {
    const std::lock_guard lock(state->mutex);
    response.set_content(state->text, "application/openmetrics-text; version=1.0.0; charset=utf-8");
  });
  const char* const interface = host.c_str();  // cpp-httplib 0.10 accepts no std::string
  if (port == 0) {
    port = server.bind_to_any_port(interface);
  } else if (!server.bind_to_port(interface, port)) {
    port = -1;
  }
  if (port <= 0)
    throw UserError(
        fmt::format("--prometheus {}: cannot listen there: the port is in use, or the address is not one of "
                    "this machine's",
                    address));
  state_->url = fmt::format("http://{}:{}/metrics", shown, port);
  state_->thread = std::thread([state = state_.get()] { state->server.listen_after_bind(); });
}

MetricsServer::~MetricsServer() {
  state_->server.stop();
  state_->thread.join();
}

const std::string& MetricsServer::url() const noexcept { return state_->url; }

void MetricsServer::set(std::string text) {
  const std::lock_guard lock(state_->mutex);
  state_->text = std::move(text);
}

}  // namespace shardscope::cli
