// Numbering, checking and reading of model trees.
#include "runtime/plan/model_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/plan/model_check.h"

namespace shardscope::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

ModelPlan sample(const std::string& name) {
  const std::string text = read(std::filesystem::path(SHARDSCOPE_SAMPLE_MODELS) / (name + ".json"));
  return build_model_plan(parse_model_spec(text));
}

const ModulePlan& module_at(const ModelPlan& model, const std::string& path) {
  for (const ModulePlan& module : model.modules) {
    if (module.path == path) return module;
  }
  throw std::out_of_range(path);
}

/// A valid tree of one linear layer, to be spoilt by tests.
std::string tiny(const std::string& node) {
  return R"({"name": "tiny", "input": {"kind": "vectors", "width": 4}, "loss": {"kind": "mse", "width": 2},
            "root": {"kind": "sequential", "children": [)" +
         node + "]}}";
}

std::string plan_error(const std::string& text) {
  try {
    (void)build_model_plan(parse_model_spec(text));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(ModelPlan, CountsOfPublishedGpt2) {
  EXPECT_EQ(build_model_plan(named_model("gpt2")).elems, 124'439'808);
  EXPECT_EQ(build_model_plan(named_model("gpt2-medium")).elems, 354'823'168);
  EXPECT_EQ(build_model_plan(named_model("gpt2-large")).elems, 774'030'080);
  EXPECT_EQ(build_model_plan(named_model("gpt2-xl")).elems, 1'557'611'200);
  EXPECT_EQ(build_model_plan(named_model("gpt2")).largest_module_elems, 38'597'376);
}

TEST(ModelPlan, GptsOfAnySize) {
  // 12 L C^2 + 13 L C in the blocks, (V + T) C embeddings, 2 C of the last norm.
  const auto elems = [](std::int64_t L, std::int64_t C, std::int64_t T, std::int64_t V) {
    return 12 * L * C * C + 13 * L * C + (V + T) * C + 2 * C;
  };
  EXPECT_EQ(build_model_plan(named_model("gpt3-6.7b")).elems, elems(32, 4096, 2048, 50257));
  EXPECT_EQ(build_model_plan(named_model("gpt3-13b")).elems, elems(40, 5120, 2048, 50257));
  EXPECT_EQ(build_model_plan(named_model("gpt3-175b")).elems, elems(96, 12288, 2048, 50257));
  EXPECT_EQ(build_model_plan(named_model("gpt:layers=3,width=64,heads=4,context=32,vocabulary=100")).elems,
            elems(3, 64, 32, 100));
  EXPECT_EQ(build_model_plan(named_model("gpt:")).elems, 124'439'808);  // gpt2, where nothing is said
  for (const char* wrong : {"gpt:depth=3", "gpt:layers", "gpt:layers=", "gpt:layers=0", "gpt:layers=3x",
                            "gpt:layers=3,,width=64", "gpt:layers=99999999999999999999"}) {
    EXPECT_THROW(static_cast<void>(named_model(wrong)), std::invalid_argument) << wrong;
  }
  EXPECT_THROW(static_cast<void>(build_model_plan(named_model("gpt:heads=7"))), std::invalid_argument);
}

TEST(ModelPlan, Gpt2HasTheNamesOfItsCheckpoints) {
  const ModelPlan model = build_model_plan(named_model("gpt2"));
  EXPECT_EQ(model.params[0].name, "transformer.wte.weight");
  EXPECT_EQ(model.params[1].name, "transformer.wpe.weight");
  EXPECT_EQ(model.params[2].name, "transformer.h.0.ln_1.weight");
  EXPECT_EQ(model.params[4].name, "transformer.h.0.attn.c_attn.weight");
  EXPECT_THAT(model.params[4].shape, ElementsAre(2304, 768));
  EXPECT_EQ(model.params.back().name, "transformer.ln_f.bias");
  EXPECT_EQ(model.params.size(), 148U);
}

TEST(ModelPlan, TiedWeightIsOneParameterOfTwoModules) {
  const ModelPlan model = build_model_plan(named_model("gpt-mini"));
  const ModulePlan& head = module_at(model, "lm_head");
  ASSERT_EQ(head.params.size(), 1U);
  EXPECT_EQ(head.params[0], ParamId{0});
  EXPECT_THAT(model.params[0].modules, ElementsAre(module_at(model, "transformer.wte").id, head.id));
}

TEST(ModelPlan, NumbersModulesInPreOrderAndGivesListsNoHooks) {
  const ModelPlan model = sample("mlp");
  std::vector<std::string> paths;
  for (const ModulePlan& module : model.modules) {
    EXPECT_EQ(raw(module.id), paths.size());
    paths.push_back(module.path);
  }
  EXPECT_THAT(
      paths, ElementsAre("", "inp", "blk", "blk.0", "blk.0.ln", "blk.0.fc1", "blk.0.fc2", "blk.1", "blk.1.ln",
                         "blk.1.fc1", "blk.1.fc2", "blk.2", "blk.2.ln", "blk.2.fc1", "blk.2.fc2", "out"));
  EXPECT_FALSE(model.modules[2].hooks);
  EXPECT_TRUE(model.modules[3].hooks);
  EXPECT_EQ(model.modules[4].parent, ModuleId{3});
  EXPECT_EQ(model.elems, 100'417);
}

TEST(ModelPlan, SampleMlpIsTheBuiltInOne) {
  const ModelPlan a = sample("mlp");
  const ModelPlan b = build_model_plan(named_model("mlp"));
  ASSERT_EQ(a.params.size(), b.params.size());
  for (std::size_t i = 0; i < a.params.size(); ++i) {
    EXPECT_EQ(a.params[i].name, b.params[i].name);
    EXPECT_EQ(a.params[i].shape, b.params[i].shape);
  }
}

TEST(ModelPlan, EverySampleBuilds) {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SHARDSCOPE_SAMPLE_MODELS)) {
    const ModelPlan model = build_model_plan(parse_model_spec(read(entry.path())));
    EXPECT_EQ(model.spec.name, entry.path().stem());
    ++models;
  }
  EXPECT_GE(models, 7);
}

TEST(ModelPlan, LeafModuleTakesTheParametersBelowIt) {
  const ModelPlan model = build_model_plan(
      parse_model_spec(tiny(R"({"kind": "sequential", "name": "moe", "leaf": true, "children": [
               {"kind": "linear", "name": "a", "in": 4, "out": 3}, {"kind": "linear", "name": "b", "in": 3, "out": 2}]})")));
  const ModulePlan& leaf = module_at(model, "moe");
  EXPECT_TRUE(leaf.leaf);
  EXPECT_TRUE(leaf.hooks);
  EXPECT_EQ(leaf.params.size(), 4U);
  EXPECT_FALSE(module_at(model, "moe.a").hooks);
  // The largest layer counts direct parameters only (M1).
  EXPECT_EQ(model.largest_module_elems, 15);
}

TEST(ModelSpec, ErrorsNameThePathTheValueAndTheRemedy) {
  const std::string good = R"({"kind": "linear", "name": "fc", "in": 4, "out": 2})";
  EXPECT_EQ(plan_error(tiny(good)), "(no error)");
  EXPECT_THAT(plan_error(tiny(R"({"kind": "linear", "name": "fc", "in": 5, "out": 2})")),
              HasSubstr("fc: \"linear\" takes width 5, but gets 4"));
  EXPECT_THAT(plan_error(tiny(R"({"kind": "linear", "name": "fc", "in": 4, "out": 3})")),
              HasSubstr("gives width 3"));
  EXPECT_THAT(plan_error(tiny(R"({"kind": "linear", "in": 4, "out": 2})")), HasSubstr("has no name"));
  EXPECT_THAT(plan_error(tiny(R"({"kind": "linear", "name": "fc", "in": 4, "out": 2, "biass": true})")),
              HasSubstr("\"biass\" is not known"));
  EXPECT_THAT(plan_error(tiny(R"({"kind": "lineer", "name": "fc"})")), HasSubstr("the kinds are sequential"));
  EXPECT_THAT(plan_error(tiny(R"({"kind": "linear", "name": "fc", "in": 0, "out": 2})")),
              HasSubstr("at least 1"));
  EXPECT_THAT(plan_error(tiny(R"({"kind": "linear", "name": "fc", "in": "x", "out": 2})")),
              HasSubstr("must be a whole number"));
  EXPECT_THAT(plan_error(tiny(good + "," + good)), HasSubstr("two modules have this path"));
  EXPECT_THAT(plan_error(tiny(good + R"(, {"kind": "reuse", "target": "nothing"})")),
              HasSubstr("no module \"nothing\""));
  EXPECT_THAT(
      plan_error(
          tiny(R"({"kind": "residual", "children": [{"kind": "linear", "name": "a", "in": 4, "out": 2}]})")),
      HasSubstr("must keep the width"));
  EXPECT_THAT(plan_error("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(plan_error("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(plan_error(tiny(good) + std::string(1, '\0')), HasSubstr("a zero byte"));
  EXPECT_EQ(plan_error(tiny(R"({"kind": "layer_norm", "name": "ln", "width": 4, "epsilon": 1e999})")),
            "model: '1e999' is beyond every number that a model file can hold; give a smaller one");
  EXPECT_THAT(plan_error(tiny(R"({"kind": "linear", "name": "fc", "in": null, "out": 2})")),
              HasSubstr("must be a whole number, but is null"));
}

// Products beyond 64 bits came out as another number of parameters, or as none.
TEST(ModelSpec, RefusesModelsBeyondTheNumbersOfTheirElements) {
  const auto message = [](std::int64_t width, std::int64_t repeat, std::int64_t outer) {
    const std::string w = std::to_string(width);
    const std::string block =
        R"({"kind": "sequential", "children": [{"kind": "list", "name": "l", "repeat": )" +
        std::to_string(repeat) + R"(, "children": [{"kind": "linear", "bias": false,
        "in": )" +
        w + R"(, "out": )" + w + "}]}]}";
    const std::string text = R"({"name": "t", "input": {"kind": "vectors", "width": )" + w +
                             R"(}, "loss": {"kind": "mse", "width": )" + w +
                             R"(}, "root": {"kind": "sequential", "children": [{"kind": "list", "name": "o",
        "repeat": )" + std::to_string(outer) +
                             R"(, "children": [)" + block + "]}]}}";
    try {
      return std::to_string(build_model_plan(parse_model_spec(text)).elems);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message(std::int64_t{1} << 25, 1, 1), std::to_string(std::int64_t{1} << 50));
  EXPECT_EQ(message(std::int64_t{1} << 24, 2, 2), std::to_string(std::int64_t{1} << 50));
  constexpr const char* kTooMany = "with it the model has more than 2^50 elements";
  EXPECT_THAT(message((std::int64_t{1} << 25) + 1, 1, 1), HasSubstr(kTooMany));
  EXPECT_THAT(message(std::int64_t{1} << 24, 5, 1), HasSubstr(kTooMany));
  for (const int bits : {31, 32, 40})
    EXPECT_THAT(message(std::int64_t{1} << bits, 1, 1), HasSubstr(kTooMany));
  EXPECT_THAT(message(std::int64_t{1} << 41, 1, 1), HasSubstr("at most 2^40"));
  EXPECT_THAT(message(4, 100'000, 100'000), HasSubstr("it may make at most 1048576 nodes"));
  for (const char* name : {"gpt:layers=65537", "gpt:layers=4000000000"})
    EXPECT_THROW(static_cast<void>(named_model(name)), std::invalid_argument) << name;
}

TEST(ModelSpec, RefusesWhatCannotRunOnTokens) {
  const auto tokens = [](const std::string& nodes) {
    return R"({"name": "t", "input": {"kind": "tokens", "vocabulary": 8, "context": 4},
              "loss": {"kind": "cross_entropy"}, "root": {"kind": "sequential", "children": [)" +
           nodes + "]}}";
  };
  const std::string wte = R"({"kind": "embedding", "name": "wte", "rows": 8, "width": 6})";
  EXPECT_THAT(plan_error(tokens(wte + R"(, {"kind": "linear", "name": "qkv", "in": 6, "out": 18},
                                       {"kind": "attention", "heads": 4})")),
              HasSubstr("4 heads do not divide the width 6"));
  EXPECT_THAT(plan_error(tokens(R"({"kind": "embedding", "name": "wte", "rows": 7, "width": 6})")),
              HasSubstr("below the vocabulary 8"));
  EXPECT_THAT(plan_error(tokens(
                  wte + R"(, {"kind": "linear", "name": "head", "in": 6, "out": 8, "weight_of": "wte"})")),
              HasSubstr("names no parameter"));
  EXPECT_EQ(plan_error(tokens(wte + R"(, {"kind": "functional_linear", "weight_of": "wte.weight"})")),
            "(no error)");
}

TEST(ModelSpec, AModuleSaysWhatItReturns) {
  const std::string blk = R"({"kind": "sequential", "name": "blk", "returns": RETURNS, "children": [
      {"kind": "linear", "name": "a", "in": 4, "out": 2, "returns": ["bias"]}]})";
  const auto with = [&](const std::string& returns) {
    std::string text = blk;
    return tiny(text.replace(text.find("RETURNS"), 7, returns));
  };
  const ModelPlan model = build_model_plan(parse_model_spec(with(R"(["a.weight", "a.weight"])")));
  EXPECT_THAT(module_at(model, "blk").returns, ElementsAre(ParamId{0}));
  EXPECT_THAT(module_at(model, "blk.a").returns, ElementsAre(ParamId{1}));
  EXPECT_THAT(plan_error(with(R"(["weight"])")), HasSubstr("blk: returns \"weight\", which is no parameter"));
  EXPECT_THAT(plan_error(with(R"("a.weight")")), HasSubstr("must be an array of parameters of this module"));
  EXPECT_THAT(plan_error(with("[1]")), HasSubstr("must be an array of parameters of this module"));
  EXPECT_THAT(plan_error(tiny(R"({"kind": "list", "name": "h", "returns": ["a.bias"], "children": [
                                 {"kind": "linear", "name": "a", "in": 4, "out": 2}]})")),
              HasSubstr("h: a list has no forward"));
  EXPECT_THAT(plan_error(tiny(R"({"kind": "residual", "returns": ["a.bias"], "children": [
                                 {"kind": "linear", "name": "a", "in": 4, "out": 4}]})")),
              HasSubstr("a functional \"residual\" returns no parameter"));
  EXPECT_THAT(plan_error(R"({"name": "r", "input": {"kind": "vectors", "width": 4},
                           "loss": {"kind": "mse", "width": 2},
                           "root": {"kind": "linear", "in": 4, "out": 2, "returns": ["bias"]}})"),
              HasSubstr("the root returns a parameter"));
}

// A tied weight is returned under the path of the module that returns it.
TEST(ModelSpec, ATiedWeightIsReturnedByItsPathThere) {
  const ModelPlan model = build_model_plan(parse_model_spec(R"({
      "name": "t", "input": {"kind": "tokens", "vocabulary": 8, "context": 4},
      "loss": {"kind": "cross_entropy"}, "root": {"kind": "sequential", "children": [
        {"kind": "embedding", "name": "wte", "rows": 8, "width": 6},
        {"kind": "sequential", "name": "out", "children": [
          {"kind": "linear", "name": "head", "in": 6, "out": 8, "weight_of": "wte.weight",
           "returns": ["weight"]}]}]}})"));
  EXPECT_THAT(module_at(model, "out.head").returns, ElementsAre(ParamId{0}));
}

TEST(ModelSpec, UnknownNameListsTheKnownOnes) {
  try {
    (void)named_model("gpt5");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("gpt2, gpt2-medium"));
    EXPECT_THAT(error.what(), HasSubstr("docs/models.md"));
  }
}

}  // namespace
}  // namespace shardscope::plan
