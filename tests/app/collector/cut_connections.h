// Cuts TCP connections of this process, as a network does: both ends live on and may connect anew.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::collector {

/// Those that lead to one of `endpoints` (tcp://HOST:PORT). Returns how many.
inline int cut_connections_to(const std::vector<std::string>& endpoints) {
  constexpr int kDescriptors = 1024;
  int cut = 0;
  for (int fd = 3; fd < kDescriptors; ++fd) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) continue;
    // The port lies at the same place in both.
    const std::uint16_t port = ntohs(reinterpret_cast<const sockaddr_in*>(&peer)->sin_port);
    for (const std::string& endpoint : endpoints) {
      if (endpoint.ends_with(":" + std::to_string(port)) && shutdown(fd, SHUT_RDWR) == 0) ++cut;
    }
  }
  return cut;
}

}  // namespace shardscope::collector
