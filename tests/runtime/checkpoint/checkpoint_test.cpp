// Weight files: written and read back, by range, in GPT-2's layout, and damaged in every way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "runtime/checkpoint/weights.h"
#include "runtime/model/init.h"

namespace shardscope::checkpoint {
namespace {

using ::testing::HasSubstr;

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (name + std::to_string(::getpid()))).string();
}

TEST(Weights, WrittenAndReadByRange) {
  plan::ModelSpec spec = plan::named_model("gpt-mini");
  for (plan::NodeSpec& node : spec.root.children[0].children) {
    if (node.kind == plan::NodeKind::list) node.children.resize(1);
  }
  const plan::ModelPlan model = plan::build_model_plan(spec);
  const model::Initializer initial(model, model::InitScheme::hash, 1);
  const std::string path = temporary("weights");
  {
    WeightWriter writer(path, model, kernels::DType::f32);
    EXPECT_THROW(writer.finish(), CheckpointError);
    // Any order.
    for (std::size_t p = model.params.size(); p-- > 0;) {
      std::vector<float> values(static_cast<std::size_t>(model.params[p].elems));
      initial.fill(model.params[p].id, {0, model.params[p].elems}, values.data());
      writer.write(model.params[p].id, values);
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.finish();
  }
  const WeightReader reader(path, model);
  EXPECT_TRUE(reader.unused().empty());
  for (const plan::ParamPlan& param : model.params) {
    std::vector<float> expected(static_cast<std::size_t>(param.elems));
    initial.fill(param.id, {0, param.elems}, expected.data());
    // Shards of three ranks, whose borders lie inside rows.
    for (std::int64_t r = 0; r < 3; ++r) {
      const std::int64_t size = (param.elems + 2) / 3;
      const plan::Range range{r * size, std::min(param.elems, (r + 1) * size)};
      std::vector<float> got(static_cast<std::size_t>(range.size()));
      reader.read(param.id, range, got.data());
      EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin() + range.begin)) << param.name;
    }
  }
  // A Conv1D weight is [in,out] in the file.
  const SafetensorsReader file(path);
  EXPECT_EQ(file.find("transformer.h.0.mlp.c_fc.weight")->shape, (std::vector<std::int64_t>{128, 512}));
  EXPECT_EQ(file.find("lm_head.weight"), nullptr);
  std::filesystem::remove(path);
}

// The same five numbers in every type that weights may have, and integers, which they may not.
TEST(Safetensors, EveryTypeOfWeightsReadsByRange) {
  const std::vector<float> values = {-1.5F, 0, 0.25F, 2, 96};
  const std::vector<std::uint16_t> f16 = {0xBE00, 0, 0x3400, 0x4000, 0x5600};
  const std::vector<std::uint16_t> bf16 = {0xBFC0, 0, 0x3E80, 0x4000, 0x42C0};
  const std::vector<double> f64(values.begin(), values.end());
  std::string entries, data;
  const auto add = [&](const std::string& type, const auto& elements) {
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(elements[0]));
    entries += (entries.empty() ? "\"" : ",\"") + type + R"(":{"dtype":")" + type +
               R"(","shape":[5],"data_offsets":[)" + std::to_string(begin) + "," +
               std::to_string(data.size()) + "]}";
  };
  add("F64", f64);
  add("F32", values);
  add("F16", f16);
  add("BF16", bf16);
  add("I8", std::vector<std::int8_t>{1, 2, 3, 4, 5});
  const std::string header = "{" + entries + "}";
  const std::uint64_t length = header.size();
  const std::string path = temporary("types");
  std::ofstream(path, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&length), sizeof(length)) << header << data;
  const SafetensorsReader reader(path);
  for (const std::string type : {"F64", "F32", "F16", "BF16"}) {
    std::vector<float> got(3, 7);
    reader.read(*reader.find(type), 1, got);
    EXPECT_THAT(got, ::testing::ElementsAre(0, 0.25F, 2)) << type;
    reader.read_strided(*reader.find(type), 0, 2, got);
    EXPECT_THAT(got, ::testing::ElementsAre(-1.5F, 0.25F, 96)) << type;
  }
  std::vector<float> none(2);
  EXPECT_THROW(reader.read(*reader.find("I8"), 0, none), CheckpointError);
  std::filesystem::remove(path);
}

// A NaN in one weight is NaN in all of them after a step.
TEST(Weights, ValuesThatAreNotFiniteAreNamed) {
  const plan::ModelPlan model = plan::build_model_plan(plan::named_model("mlp"));
  const std::string path = temporary("not_finite");
  const plan::ParamPlan& broken = model.params[2];
  for (const auto& [bad, name] : {std::pair(std::numeric_limits<float>::quiet_NaN(), "nan"),
                                  std::pair(-std::numeric_limits<float>::infinity(), "-inf")}) {
    WeightWriter writer(path, model, kernels::DType::f32);
    for (const plan::ParamPlan& param : model.params) {
      std::vector<float> values(static_cast<std::size_t>(param.elems), 0.5F);
      if (param.id == broken.id) values[7] = bad;
      writer.write(param.id, values);
    }
    writer.finish();
    const WeightReader reader(path, model);
    std::vector<float> values(static_cast<std::size_t>(broken.elems));
    reader.read(broken.id, {8, broken.elems}, values.data());
    try {
      reader.read(broken.id, {5, broken.elems}, values.data());
      ADD_FAILURE() << "accepted";
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("weights: " + path + ": element 7 of " + broken.name + " is " + name));
    }
    std::filesystem::remove(path);
  }
}

TEST(Weights, AFileOfAnotherModelIsRefused) {
  const plan::ModelPlan model = plan::build_model_plan(plan::named_model("gpt-mini"));
  try {
    const WeightReader reader("tests/reference/gpt_reference.safetensors", model);
    FAIL() << "accepted";
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("transformer.wte.weight has shape [61, 24], the model needs [256, 128]"));
    EXPECT_THAT(error.what(), HasSubstr("transformer.h.2.ln_1.weight is missing"));
  }
}

/// Foreign bytes: any change is either harmless or an error, never a read outside the file.
TEST(Safetensors, DamagedFilesAreErrors) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}})";
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  file += header + std::string(22, '\1');
  auto parse = [](const std::string& bytes) { return parse_safetensors(std::as_bytes(std::span(bytes))); };
  EXPECT_EQ(parse(file).tensors.size(), 2U);
  for (std::size_t cut = 0; cut < file.size(); ++cut)
    EXPECT_THROW(parse(file.substr(0, cut)), CheckpointError) << cut;
  EXPECT_THROW(parse(file + "x"), CheckpointError);
  std::mt19937 random(1);
  int refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string damaged = file;
    const auto changes = 1 + random() % 3;
    for (std::uint32_t i = 0; i < changes; ++i)
      damaged[random() % (8 + header.size())] = static_cast<char>(random());
    try {
      for (const TensorInfo& tensor : parse(damaged).tensors) {
        ASSERT_LE(tensor.end, 22U);
        ASSERT_LE(tensor.begin, tensor.end);
      }
    } catch (const CheckpointError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10000);
}

// Radford et al. 2019: the last linear of each of the R residual branches (two per layer) begins smaller by
// sqrt(R), so that what the branches add up to does not grow with depth.
TEST(Initializer, Gpt2sResidualBranchesBeginSmaller) {
  const plan::ModelPlan model = plan::build_model_plan(plan::named_model("gpt-mini"));
  const auto ends_with = [](const std::string& name, std::string_view end) {
    return name.size() >= end.size() && std::string_view(name).substr(name.size() - end.size()) == end;
  };
  const auto branches = std::count_if(model.params.begin(), model.params.end(), [&](const auto& param) {
    return ends_with(param.name, "c_proj.weight");
  });
  ASSERT_EQ(branches, 8) << "four layers";
  const model::Initializer initial(model, model::InitScheme::gpt2, 7);
  for (const plan::ParamPlan& param : model.params) {
    SCOPED_TRACE(param.name);
    std::vector<float> values(static_cast<std::size_t>(param.elems));
    initial.fill(param.id, {0, param.elems}, values.data());
    if (param.shape.size() == 1) {
      const float expected = ends_with(param.name, "bias") ? 0 : 1;
      EXPECT_EQ(std::count(values.begin(), values.end(), expected), param.elems);
      continue;
    }
    double squares = 0;
    for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
    const double expected = ends_with(param.name, "c_proj.weight") ? 0.02 / std::sqrt(8.0) : 0.02;
    // The deviation of 8192 numbers and more is known to 1 %.
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(param.elems)), expected, 0.05 * expected);
  }
}

TEST(Initializer, AShardIsASliceOfTheWhole) {
  const plan::ModelPlan model = plan::build_model_plan(plan::named_model("gpt-mini"));
  const plan::ParamPlan& param = model.params[0];
  for (const model::InitScheme scheme :
       {model::InitScheme::gpt2, model::InitScheme::hash, model::InitScheme::sine}) {
    const model::Initializer initial(model, scheme, 7);
    std::vector<float> whole(static_cast<std::size_t>(param.elems));
    initial.fill(param.id, {0, param.elems}, whole.data());
    for (const plan::Range range :
         {plan::Range{1, 2}, plan::Range{3, 1000}, plan::Range{param.elems - 5, param.elems}}) {
      std::vector<float> part(static_cast<std::size_t>(range.size()));
      initial.fill(param.id, range, part.data());
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + range.begin));
    }
    if (scheme != model::InitScheme::gpt2) continue;
    double sum = 0;
    double squares = 0;
    for (const float value : whole) {
      sum += value;
      squares += static_cast<double>(value) * value;
    }
    const auto n = static_cast<double>(param.elems);
    EXPECT_NEAR(sum / n, 0, 5 * 0.02 / std::sqrt(n));  // five standard errors
    EXPECT_NEAR(std::sqrt(squares / n), 0.02, 5 * 0.02 / std::sqrt(2 * n));
  }
}

TEST(Initializer, TheRecordedHashValues) {
  const plan::ModelPlan model = plan::build_model_plan(plan::named_model("mlp"));
  float values[4];
  model::Initializer(model, model::InitScheme::hash, 0).fill(plan::ParamId{0}, {0, 4}, values);
  const float expected[] = {0.2917189598083496F, -0.40966254472732544F, 0.22010909020900726F,
                            0.14555861055850983F};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(values[i], expected[i]);
}

}  // namespace
}  // namespace shardscope::checkpoint
