#include "app/analysis/not_told.h"

#include <fmt/format.h>

#include "app/store/names.h"

namespace shardscope::analysis {

std::string not_told(std::string_view what, ev::Detail from, std::optional<ev::Detail> recorded) {
  if (recorded && *recorded >= from) {
    return fmt::format("this run tells no {}, though it was recorded at detail {}", what,
                       store::name_of(*recorded));
  }
  return fmt::format("{} are recorded from detail {} on, and nothing{} was recorded", what,
                     store::name_of(from),
                     recorded ? std::string(" above ") + store::name_of(*recorded) : "");
}

}  // namespace shardscope::analysis
