// DeepSpeed configurations; what is accepted must read back from its own effective form.
#include <string>

#include "runtime/config/config.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  config::ParseOptions options;
  options.world = 4;
  options.total_steps = 10;
  try {
    const config::TrainingConfig config =
        config::parse_config({reinterpret_cast<const char*>(data), size}, options);
    const std::string effective = config::effective_json(config);
    fuzz::must(config::effective_json(config::parse_config(effective, options)) == effective);
  } catch (const config::ConfigError&) {
  }
  return 0;
}
