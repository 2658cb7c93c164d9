// Numbers in sentences of reports and findings.
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::analysis {

/// 3-4 significant digits with the unit that gives them: "12.3 ms", "1.25 MiB".
[[nodiscard]] std::string time_text(std::int64_t ns);
[[nodiscard]] std::string bytes_text(std::int64_t bytes);
[[nodiscard]] std::string count_text(double value);

}  // namespace shardscope::analysis
