// The C interface's description of a run, called with anything: what it would start with can be said to a
// collector and is understood there as it was described.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "instrumentation/c_api/run.h"
#include "instrumentation/table_checks.h"
#include "instrumentation/wire.h"
#include "shardscope/shardscope.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;
namespace wire = instrumentation::wire;

namespace {

/// Arguments out of an input: numbers of few and of all bits, texts with and without an end before theirs.
class Arguments {
 public:
  Arguments(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  [[nodiscard]] bool left() const { return at_ < end_; }
  template <typename T>
  T number() {
    const std::uint8_t how = byte();
    if (how < 200) return static_cast<T>(how % 7);
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) bits = bits << 8 | byte();
    return static_cast<T>(bits);
  }
  double real() {
    const auto bits = number<std::uint64_t>();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  /// Null, or a text that lives as long as this.
  const char* text() {
    const std::uint8_t length = byte();
    if (length == 255) return nullptr;
    std::string value;
    for (std::size_t i = 0; i < length % 32U && left(); ++i) value += static_cast<char>(byte());
    if (length >= 250) value.resize(value.size() + (std::size_t{1} << (length % 16U)), 'x');
    texts_.push_back(std::make_unique<std::string>(std::move(value)));
    return texts_.back()->c_str();
  }
  std::uint8_t byte() { return at_ < end_ ? *at_++ : std::uint8_t{0}; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::vector<std::unique_ptr<std::string>> texts_;
};

shardscope_run* create(Arguments& in) {
  shardscope_run_info info = SHARDSCOPE_RUN_INFO_INIT;
  // Of an older header, which ends between two fields.
  if (in.byte() >= 250) info.size = sizeof(void*) * (in.byte() % (sizeof info / sizeof(void*) + 1));
  info.run_id = in.text();
  info.model = in.text();
  info.device = in.text();
  info.hardware = in.text();
  info.versions = in.text();
  info.config_json = in.byte() % 4 == 0 ? in.text() : "{}";
  info.host = in.text();
  info.rank = in.number<std::uint32_t>();
  info.world = in.number<std::uint32_t>();
  info.local_world = in.number<std::uint32_t>();
  info.stage = in.number<std::int32_t>();
  info.elems = in.number<std::int64_t>();
  info.param_bytes = in.number<std::uint32_t>();
  info.grad_bytes = in.number<std::uint32_t>();
  info.master_bytes = in.number<std::uint32_t>();
  info.simulated = in.byte() % 2;
  info.link_gbps = in.real();
  info.link_latency_us = in.real();
  shardscope_run* run = nullptr;
  (void)shardscope_run_create(&info, &run);
  return run;
}

void describe(shardscope_run* run, Arguments& in) {
  switch (in.byte() % 5) {
    case 0: {
      shardscope_module module = SHARDSCOPE_MODULE_INIT;
      module.parent = in.byte() % 2 == 0 ? SHARDSCOPE_NO_ID : in.number<std::uint32_t>();
      module.path = in.text();
      module.type = in.text();
      module.hooks = in.byte() % 2;
      (void)shardscope_add_module(run, &module, nullptr);
      return;
    }
    case 1: {
      shardscope_param param = SHARDSCOPE_PARAM_INIT;
      std::vector<std::int64_t> shape(in.byte() % 20U);
      for (std::int64_t& extent : shape) extent = in.number<std::int64_t>();
      param.name = in.text();
      param.dtype = in.text();
      param.dims = static_cast<std::uint32_t>(shape.size());
      param.shape = shape.empty() ? nullptr : shape.data();
      param.shard_elems = in.number<std::int64_t>();
      param.padding_elems = in.number<std::int64_t>();
      param.persistent = in.byte() % 2;
      (void)shardscope_add_param(run, &param, nullptr);
      return;
    }
    case 2:
      (void)shardscope_use_param(run, in.number<std::uint32_t>(), in.number<std::uint32_t>());
      return;
    case 3:
      (void)shardscope_freeze_param(run, in.number<std::uint32_t>());
      return;
    default: {
      shardscope_slice slice = SHARDSCOPE_SLICE_INIT;
      slice.param = in.number<std::uint32_t>();
      slice.rank = in.number<std::uint32_t>();
      slice.param_offset = in.number<std::int64_t>();
      slice.shard_offset = in.number<std::int64_t>();
      slice.elems = in.number<std::int64_t>();
      slice.padding_elems = in.number<std::int64_t>();
      (void)shardscope_add_slice(run, &slice);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Arguments in(data, size);
  shardscope_run* run = create(in);
  if (run == nullptr) return 0;
  while (in.left()) describe(run, in);
  const instrumentation::RunTables& said = run->tables;
  if (instrumentation::validate(said) != nullptr) {  // shardscope_start() refuses it
    shardscope_run_destroy(run);
    return 0;
  }
  wire::Header header;
  header.rank = said.rank;
  header.run_id = said.run_id;
  const wire::Frame frame = wire::encode({header, wire::Tables{said}});
  const wire::Decoded decoded = wire::decode(frame.data(), frame.size(), wire::From::rank_publish);
  fuzz::must(decoded.message.has_value());
  const instrumentation::RunTables& tables = std::get<wire::Tables>(decoded.message->body).tables;
  fuzz::must(tables.modules == said.modules && tables.params == said.params && tables.slices == said.slices);
  fuzz::must(tables.world == said.world && tables.stage == said.stage && tables.model == said.model &&
             tables.config_json == said.config_json && tables.elems == said.elems);
  shardscope_run_destroy(run);
  return 0;
}
