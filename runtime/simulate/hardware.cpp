#include "runtime/simulate/hardware.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "runtime/base/open_file.h"
#include "runtime/config/config.h"
#include "runtime/config/json_section.h"
#include "runtime/train/options.h"

namespace shardscope::simulate {
namespace {

namespace fs = std::filesystem;

/// Of collectives; others have no rings.
enum class Rings : std::uint8_t { none, some };

void read_link(config::Section& parent, const std::string& key, LinkSpeed& link, Rings rings = Rings::none) {
  config::Section section = parent.child_or_empty(key);
  section.read("gb_per_s", link.gb_per_s, 0);
  section.read("latency_us", link.latency_us, 0);
  if (rings == Rings::some) section.read("ring_step_us", link.ring_step_us, 0);
  if (link.gb_per_s <= 0) section.fail("gb_per_s", "is missing or 0; give the rate in 10^9 bytes per second");
  section.finish();
}

void must_be_given(const config::Section& section, const std::string& key, double value) {
  if (value <= 0) section.fail(key, "is missing or 0; give the rate of one rank (docs/simulate.md)");
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Hardware parse_hardware(const std::string& json_text, const std::string& file) {
  config::ParseContext context;
  context.file = file;
  // The parser takes a zero byte for the end of the text and ignores the rest.
  if (json_text.find('\0') != std::string::npos) {
    throw config::ConfigError(file + ": is not JSON: holds a zero byte; write it anew");
  }
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(json_text, nullptr, true, true);
  } catch (const nlohmann::json::parse_error& error) {
    throw config::ConfigError(file + ": is not JSON: " + error.what());
  } catch (const nlohmann::json::out_of_range&) {
    const config::LargeNumber number = config::first_large_number(json_text);
    throw config::ConfigError(file + ": " + number.path + ": is " + number.text +
                              ", which is beyond every number that the file can hold; give a smaller one");
  }
  if (!json.is_object()) throw config::ConfigError(file + ": must be an object (docs/simulate.md)");
  config::Section section(context, json, "");
  Hardware h;
  section.read("name", h.name);
  section.read("description", h.description);
  std::vector<std::string> sources;  // for readers of the file
  section.read("sources", sources);
  std::int64_t ranks_per_node = h.ranks_per_node;
  section.read("ranks_per_node", ranks_per_node, 1, 1 << 16);
  h.ranks_per_node = static_cast<std::uint32_t>(ranks_per_node);
  section.read("memory_gib", h.memory_gib);
  section.read("f32_tflops", h.f32_tflops);
  section.read("f16_tflops", h.f16_tflops);
  section.read("matrix_efficiency", h.matrix_efficiency, 0.001, 1);
  std::int64_t processors = 0;
  section.read("processors", processors, 0, 1 << 16);
  h.processors = static_cast<std::uint32_t>(processors);
  section.read("matrix_half_depth", h.matrix_half_depth, 0, 1 << 20);
  section.read("attention_efficiency", h.attention_efficiency, 0, 1);
  section.read("memory_gb_per_s", h.memory_gb_per_s);
  section.read("memory_efficiency", h.memory_efficiency, 0.001, 1);
  section.read("kernel_us", h.kernel_us);
  section.read("launch_us", h.launch_us);
  section.read("overlap_slowdown", h.overlap_slowdown, 0, 1);
  section.read("host_memory_gb_per_s", h.host_memory_gb_per_s);
  must_be_given(section, "f32_tflops", h.f32_tflops);
  must_be_given(section, "f16_tflops", h.f16_tflops);
  must_be_given(section, "memory_gb_per_s", h.memory_gb_per_s);
  must_be_given(section, "host_memory_gb_per_s", h.host_memory_gb_per_s);
  read_link(section, "inside", h.inside, Rings::some);
  read_link(section, "between", h.between, Rings::some);
  read_link(section, "host", h.host);
  if (json.contains("nvme")) read_link(section, "nvme", h.nvme);
  section.finish();
  if (h.name.empty()) h.name = fs::path(file).stem().string();
  return h;
}

Hardware load_hardware(const std::string& name_or_file, const std::string& folder) {
  const bool is_file = name_or_file.ends_with(".json");
  const std::string path = is_file ? name_or_file : (fs::path(folder) / (name_or_file + ".json")).string();
  std::string read;
  try {
    read = base::read_file(path);
  } catch (const base::FileError& error) {
    std::string known;
    for (const std::string& name : names_in(folder)) known += (known.empty() ? "" : ", ") + name;
    const std::string text =
        "--hardware " + name_or_file + (is_file ? std::string(": ") + error.what() : ": unknown") + "; use " +
        (known.empty() ? std::string() : known + " or ") + "a JSON file (docs/simulate.md)";
    if (is_file) throw std::invalid_argument(text);
    throw train::UsageError(text);
  }
  return parse_hardware(read, path);
}

}  // namespace shardscope::simulate
