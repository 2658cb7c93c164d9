#include "runtime/checkpoint/manifest.h"

#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/base/checksum.h"
#include "runtime/checkpoint/block_checksums.h"
#include "runtime/checkpoint/safetensors.h"

namespace shardscope::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "shardscope checkpoint";
/// Precedes the checksum of all text before this key.
constexpr std::string_view kChecksumKey = ",\n \"checksum\": \"";

// Many readers parse JSON numbers as doubles: 64 bits are written as text.
std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// Accepts exactly the output of hex(): stoull would also accept a prefix, a sign or capitals.
std::uint64_t from_hex(const std::string& text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw CheckpointError("\"" + text + "\" is no 64-bit checksum");
  }
  return std::stoull(text, nullptr, 16);
}

std::uint64_t sum_of(std::string_view text) { return base::checksum(std::as_bytes(std::span(text))); }

void require(bool good, const std::string& what) {
  if (!good) throw CheckpointError(what);
}

std::int64_t count(const Json& value, const char* what) {
  // get() truncates a float; the check below rejects it.
  const auto number = value.at(what).get<std::int64_t>();
  require(value.at(what).is_number_integer() && number >= 0,
          std::string(what) + " is " + value.at(what).dump());
  return number;
}

// Describes the function of a node. Left out: returned parameters, leaves and checkpointing, which change no
// result, and trainable flags, which are compared separately.
void describe_node(std::ostream& out, const plan::NodeSpec& node) {
  // Hexfloat: the same digits on every machine.
  out << '(' << static_cast<int>(node.kind) << ' ' << node.name << ' ' << node.functional << ' ' << node.in
      << ' ' << node.out << ' ' << node.bias << ' ' << std::hexfloat << node.epsilon << ' ' << node.heads
      << ' ' << static_cast<int>(node.lookup) << ' ' << node.weight_of << ' ' << node.target;
  // Skipped iterations are a part of the function.
  for (const std::int64_t iteration : node.skip_iterations) out << " skip " << iteration;
  for (const plan::NodeSpec& child : node.children) describe_node(out, child);
  out << ')';
}

Json file_json(const RankFile& file) {
  Json blocks = Json::array();
  for (const std::uint64_t block : file.blocks) blocks.push_back(hex(block));
  Json slices = Json::array();
  for (const FileSlice& slice : file.slices) {
    // [parameter, offset, elements]: three numbers instead of keys, since there may be very many.
    slices.push_back(Json::array({slice.param, slice.offset, slice.elems}));
  }
  return {{"name", file.name}, {"bytes", file.bytes}, {"blocks", blocks}, {"slices", slices}};
}

RankFile read_file(const Json& json, const std::vector<SavedParam>& params) {
  RankFile file;
  file.name = json.at("name").get<std::string>();
  // A manifest may come from anywhere: it must not name a file outside its folder, or a hidden one.
  require(!file.name.empty() && file.name.find('/') == std::string::npos && file.name[0] != '.',
          "\"" + file.name + "\" is no name of a file of the folder");
  file.bytes = static_cast<std::uint64_t>(count(json, "bytes"));
  for (const Json& block : json.at("blocks")) file.blocks.push_back(from_hex(block.get<std::string>()));
  // Ensures that verify() finds a checksum for each block.
  require(file.blocks.size() == block_count(file.bytes), file.name + ": checksums and size do not match");
  // Maximum elements of weights in the file's bytes: readers add up the slices.
  auto room = static_cast<std::int64_t>(file.bytes / sizeof(float));
  for (const Json& entry : json.at("slices")) {
    const FileSlice slice{entry.at(0).get<std::uint32_t>(), entry.at(1).get<std::int64_t>(),
                          entry.at(2).get<std::int64_t>()};
    // By subtraction: offset + elems could overflow.
    require(slice.param < params.size() && slice.offset >= 0 && slice.elems > 0 &&
                slice.elems <= params[slice.param].elems &&
                slice.offset <= params[slice.param].elems - slice.elems,
            file.name + ": slice " + entry.dump() + " is in no parameter");
    require(slice.elems <= room, file.name + ": its slices have more elements than fit in " +
                                     std::to_string(file.bytes) + " bytes");
    room -= slice.elems;
    file.slices.push_back(slice);
  }
  return file;
}

SavedParam read_param(const Json& json) {
  SavedParam param{json.at("name").get<std::string>(), json.at("shape").get<std::vector<std::int64_t>>(), 1,
                   json.value("trainable", true)};
  // elems begins at 1, so that a scalar has one.
  for (const std::int64_t extent : param.shape) {
    require(extent >= 0 && !__builtin_mul_overflow(param.elems, extent, &param.elems),
            param.name + " has the shape " + json.at("shape").dump());
  }
  return param;
}

/// A double as its bits: exact, and JSON has no infinity.
std::string bits(double value) { return hex(std::bit_cast<std::uint64_t>(value)); }

Json zenflow_json(const plan::ZenFlowProgress& zenflow) {
  // By matrix, in the order of the parameters.
  const auto list = [](const std::vector<double>& values) {
    Json all = Json::array();
    for (const double value : values) all.push_back(bits(value));
    return all;
  };
  return {{"step", zenflow.step},
          {"in_sum", zenflow.in_sum},
          {"since_decision", zenflow.since_decision},
          {"decided", zenflow.decided},
          {"average_selected", list(zenflow.average_selected)},
          {"waiting", list(zenflow.waiting)},
          {"chosen", zenflow.chosen},
          {"unpublished", zenflow.unpublished}};
}

plan::ZenFlowProgress read_zenflow(const Json& json) {
  const auto list = [](const Json& values) {
    std::vector<double> all;
    for (const Json& value : values) all.push_back(std::bit_cast<double>(from_hex(value.get<std::string>())));
    return all;
  };
  plan::ZenFlowProgress zenflow;
  // Counts are checked, flags and sums are not; ZenFlowSchedule::restore() checks the number of matrices.
  zenflow.step = count(json, "step");
  zenflow.in_sum = count(json, "in_sum");
  zenflow.since_decision = count(json, "since_decision");
  zenflow.decided = json.at("decided").get<bool>();
  zenflow.average_selected = list(json.at("average_selected"));
  zenflow.waiting = list(json.at("waiting"));
  zenflow.chosen = json.at("chosen").get<bool>();
  zenflow.unpublished = json.at("unpublished").get<bool>();
  return zenflow;
}

Manifest read(const Json& json) {
  // Before the version: another JSON file may have a version too.
  require(json.at("format") == kFormat, "it is no manifest of a Shardscope checkpoint");
  require(json.at("version") == kFormatVersion, "it has format version " + json.at("version").dump() +
                                                    "; this program reads version " +
                                                    std::to_string(kFormatVersion));
  Manifest manifest;
  manifest.progress.step = count(json, "step");
  manifest.progress.micro_step = count(json, "micro_step");
  manifest.progress.updates = count(json, "updates");
  if (const Json& scaler = json.at("loss_scaler"); !scaler.is_null()) {
    plan::LossScaler::Saved saved;
    saved.scale = scaler.at("scale").get<double>();
    saved.hysteresis = scaler.at("hysteresis").get<std::int64_t>();
    saved.iteration = scaler.at("iteration").get<std::int64_t>();
    saved.last_overflow = scaler.at("last_overflow").get<std::int64_t>();
    require(saved.scale > 0, "the loss scale is " + scaler.at("scale").dump());
    manifest.progress.loss_scaler = saved;
  }
  // Optional: added after the first manifests.
  if (const auto zenflow = json.find("zenflow"); zenflow != json.end() && !zenflow->is_null()) {
    manifest.progress.zenflow = read_zenflow(*zenflow);
  }
  const Json& data = json.at("data");
  // The fingerprint of the data is hex like all others; the seed is a number that a user gave.
  manifest.data = {count(data, "epoch"), count(data, "position"), count(data, "samples"),
                   data.at("seed").get<std::uint64_t>(), from_hex(data.at("fingerprint").get<std::string>())};
  // World and stage of the writer. Readers accept any: the slices give all locations.
  manifest.world = json.at("world").get<std::uint32_t>();
  manifest.stage = json.at("stage").get<std::uint32_t>();
  manifest.type = json.at("type").get<std::string>();
  const Json& model = json.at("model");
  manifest.model = model.at("name").get<std::string>();
  manifest.model_fingerprint = from_hex(model.at("fingerprint").get<std::string>());
  for (const Json& param : model.at("parameters")) manifest.params.push_back(read_param(param));
  // As text: not interpreted here.
  manifest.config_json = json.at("config").dump();
  // After the parameters, which their slices must match.
  for (const Json& file : json.at("files")) manifest.files.push_back(read_file(file, manifest.params));
  return manifest;
}

}  // namespace

std::uint64_t model_fingerprint(const plan::ModelPlan& model) {
  std::ostringstream text;
  const plan::ModelSpec& spec = model.spec;
  // Without the model's name, which does not affect the result.
  text << static_cast<int>(spec.input) << ' ' << static_cast<int>(spec.loss) << ' ' << spec.vocabulary << ' '
       << spec.context << ' ' << spec.input_width << ' ' << spec.output_width;
  describe_node(text, spec.root);
  return sum_of(text.str());
}

void describe_model(const plan::ModelPlan& model, Manifest& manifest) {
  manifest.model = model.spec.name;
  manifest.model_fingerprint = model_fingerprint(model);
  for (const plan::ParamPlan& param : model.params) {
    // By ParamId: slices refer to a parameter by its index in this list.
    manifest.params.push_back({param.name, param.shape, param.elems, param.trainable});
  }
}

std::string to_text(const Manifest& manifest) {
  const Progress& progress = manifest.progress;
  Json scaler;
  // Null for a static scale, which has no state.
  if (const auto& saved = progress.loss_scaler) {
    scaler = {{"scale", saved->scale},
              {"hysteresis", saved->hysteresis},
              {"iteration", saved->iteration},
              {"last_overflow", saved->last_overflow}};
  }
  Json params = Json::array();
  for (const SavedParam& param : manifest.params) {
    Json entry{{"name", param.name}, {"shape", param.shape}};
    // Only if not the default, so that manifests of models without frozen parameters are unchanged.
    if (!param.trainable) entry["trainable"] = false;
    params.push_back(std::move(entry));
  }
  Json files = Json::array();
  for (const RankFile& file : manifest.files) files.push_back(file_json(file));
  // ordered_json: in this order in the file.
  const Json json{
      {"format", kFormat},
      {"version", kFormatVersion},
      {"step", progress.step},
      {"micro_step", progress.micro_step},
      {"updates", progress.updates},
      {"loss_scaler", scaler},
      {"zenflow", progress.zenflow ? zenflow_json(*progress.zenflow) : Json()},
      {"data",
       {{"epoch", manifest.data.epoch},
        {"position", manifest.data.position},
        {"samples", manifest.data.samples},
        {"seed", manifest.data.seed},
        {"fingerprint", hex(manifest.data.fingerprint)}}},
      {"world", manifest.world},
      {"stage", manifest.stage},
      {"type", manifest.type},
      {"model",
       {{"name", manifest.model}, {"fingerprint", hex(manifest.model_fingerprint)}, {"parameters", params}}},
      {"config", Json::parse(manifest.config_json)},
      {"block_bytes", kBlockBytes},
      {"files", files}};
  // One line per key and per file: compact, but still readable.
  std::string text = "{";
  for (const auto& item : json.items()) {
    text += (text.size() > 1 ? ",\n " : "\n ") + Json(item.key()).dump() + ": ";
    if (item.key() != "files") {
      text += item.value().dump();
      continue;
    }
    // One line for each file.
    text += '[';
    for (const Json& file : item.value()) text += (text.back() == '[' ? "\n  " : ",\n  ") + file.dump();
    text += ']';
  }
  // Over all text before the key.
  const std::string sum = hex(sum_of(text));
  return text.append(kChecksumKey) + sum + "\"\n}\n";
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  // Searched from the end of the text.
  const std::size_t at = text.rfind(kChecksumKey);
  const std::string end = at == std::string::npos ? "" : text.substr(at + kChecksumKey.size());
  // The end is compared as a whole, so that nothing can follow the checksum.
  const std::string_view body = std::string_view(text).substr(0, at == std::string::npos ? 0 : at);
  if (end != hex(sum_of(body)) + "\"\n}\n") {
    throw CheckpointError("checkpoint: " + path +
                          ": cut or damaged, its checksum does not match; use another checkpoint");
  }
  try {
    return read(Json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError("checkpoint: " + path + ": not understood (" + error.what() + ")");
  } catch (const CheckpointError& error) {
    throw CheckpointError("checkpoint: " + path + ": " + error.what());
  }
}

}  // namespace shardscope::checkpoint
