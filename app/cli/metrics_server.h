// Serves one text at http://HOST:PORT/metrics, for a Prometheus server. The page is public to whoever reaches
// the address: it has figures and names of the run, and cannot be used to change anything.
#pragma once

#include <memory>
#include <string>

namespace shardscope::cli {

class MetricsServer {
 public:
  /// `address`: HOST:PORT; port 0 chooses one. Serves on a thread of its own. Throws UserError: address,
  /// reason.
  explicit MetricsServer(const std::string& address);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  [[nodiscard]] const std::string& url() const noexcept;
  /// Replaces the text.
  void set(std::string text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardscope::cli
