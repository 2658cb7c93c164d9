#include "runtime/device/error.h"

#include <utility>

namespace shardscope {
namespace {

std::string describe(const std::string& call, int code, const std::string& text, const std::string& where) {
  std::string message = call + ": " + text;
  if (code != 0) message += " (code " + std::to_string(code) + ")";
  if (!where.empty()) message += " [" + where + "]";
  return message;
}

}  // namespace

BackendError::BackendError(std::string call, int code, std::string text, std::string where)
    : std::runtime_error(describe(call, code, text, where)), call_(std::move(call)), code_(code) {}

}  // namespace shardscope
