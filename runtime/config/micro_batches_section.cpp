// shardscope.micro_batches: how large a micro-batch is. In DeepSpeed the data loader's collate function
// decides that, so its files have no key; packing and padding are named as in common trainers.
#include <string>

#include "runtime/config/sections.h"

namespace shardscope::config {
namespace {

constexpr std::size_t kMostShapes = std::size_t{1} << 16;
constexpr std::int64_t kMostOfShape = std::int64_t{1} << 24;

bool is_count(const nlohmann::json& value) {
  return value.is_number_integer() && value.get<double>() >= 1 &&
         value.get<double>() <= static_cast<double>(kMostOfShape);
}

void read_separator(Section& section, plan::MicroBatches& out) {
  const nlohmann::json* value = section.find("separator");
  if (value == nullptr) return;
  if (value->is_number_integer()) return section.read("separator", out.separator_token, 0, 65535);
  section.read("separator", out.separator);
  if (out.separator.empty()) {
    section.fail("separator", "is empty; give the text between documents, or a token's number");
  }
}

void read_shapes(Section& section, plan::MicroBatches& out) {
  const nlohmann::json* list = section.find("shapes");
  if (list == nullptr) return;
  if (!list->is_array() || list->size() > kMostShapes) {
    return section.fail("shapes", "must be a list of up to " + std::to_string(kMostShapes) +
                                      " pairs, [samples, tokens of each]");
  }
  out.shapes.clear();
  for (const nlohmann::json& one : *list) {
    if (!one.is_array() || one.size() != 2 || !is_count(one[0]) || !is_count(one[1])) {
      return section.fail("shapes", "number " + std::to_string(out.shapes.size()) + " is " + one.dump() +
                                        "; give [samples, tokens of each], two whole numbers from 1 to " +
                                        std::to_string(kMostOfShape));
    }
    out.shapes.push_back({one[0].get<std::int64_t>(), one[1].get<std::int64_t>()});
  }
}

}  // namespace

void read_micro_batches(Section section, plan::MicroBatches& out) {
  section.read_enum("packing", {"fixed", "padded", "packed"},
                    [&](std::size_t i) { out.packing = static_cast<plan::Packing>(i); });
  read_separator(section, out);
  section.read("pad_to_multiple_of", out.pad_to_multiple_of, 1, 1 << 20);
  read_shapes(section, out);
  section.finish();
  const bool fixed = out.packing == plan::Packing::fixed;
  if (fixed && out.pad_to_multiple_of != 1) {
    section.fail("pad_to_multiple_of",
                 "is for packing \"padded\" and \"packed\"; fixed ones have no padding");
  }
  if (!fixed && !out.shapes.empty()) {
    section.fail("shapes", "are for packing \"fixed\"; documents have lengths of their own");
  }
}

}  // namespace shardscope::config
