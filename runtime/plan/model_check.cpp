#include "runtime/plan/model_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "runtime/plan/model_error.h"

namespace shardscope::plan {

// The parser looks kinds up by these names (model_parse.cpp): they must be distinct.
const char* kind_name(NodeKind kind) noexcept {
  switch (kind) {
    case NodeKind::sequential:
      return "sequential";
    case NodeKind::list:
      return "list";
    case NodeKind::linear:
      return "linear";
    case NodeKind::layer_norm:
      return "layer_norm";
    case NodeKind::embedding:
      return "embedding";
    case NodeKind::gelu:
      return "gelu";
    case NodeKind::relu:
      return "relu";
    case NodeKind::residual:
      return "residual";
    case NodeKind::attention:
      return "attention";
    case NodeKind::embedding_sum:
      return "embedding_sum";
    case NodeKind::functional_linear:
      return "functional_linear";
    case NodeKind::conditional:
      return "conditional";
    case NodeKind::reuse:
      return "reuse";
  }
  return "?";
}

// Decides which nodes have an id, a path component and a type. A list is a module, but has no hooks.
bool is_module(const NodeSpec& node) noexcept {
  switch (node.kind) {
    case NodeKind::sequential:
    case NodeKind::list:
    case NodeKind::linear:
    case NodeKind::layer_norm:
    case NodeKind::embedding:
      return true;
    // torch has both forms of an activation: a module and a function.
    case NodeKind::gelu:
    case NodeKind::relu:
      return !node.functional;
    case NodeKind::residual:
    case NodeKind::attention:
    case NodeKind::embedding_sum:
    case NodeKind::functional_linear:
    case NodeKind::conditional:
    case NodeKind::reuse:
      return false;
  }
  return false;
}

// The root's path is empty: names of modules and parameters must not begin with a dot.
std::string join_path(const std::string& parent, const std::string& name) {
  if (parent.empty()) return name;
  if (name.empty()) return parent;
  return parent + "." + name;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

namespace {

/// Type of the values between nodes: vectors of a width, or token ids (kTokens).
constexpr std::int64_t kTokens = -1;
/// Limit of one extent. Products are checked where they are computed (model_plan.cpp).
constexpr std::int64_t kMaxElems = std::int64_t{1} << 40;

/// Two passes: collect() checks names and fills the maps of reference targets, flow() checks the widths. The
/// first must be complete before the second begins, since a reference may point forwards.
class Checker {
 public:
  explicit Checker(const ModelSpec& spec) : spec_(spec) {}

  void run() {
    check_header();
    // Ids begin at the root, and its hooks begin an iteration: it needs a forward.
    if (!is_module(spec_.root) || spec_.root.kind == NodeKind::list) {
      fail_model("", std::string("the root must be a module that runs, such as \"sequential\", not \"") +
                         kind_name(spec_.root.kind) + "\"");
    }
    // Parameters that a module returns are kept for the modules around it (P11).
    if (!spec_.root.returns.empty()) {
      fail_model("", "the root returns a parameter, but nothing runs around it that could use one");
    }
    collect(spec_.root, "");
    // kTokens until an embedding has looked them up: token ids have no width.
    const std::int64_t first = spec_.input == InputKind::tokens ? kTokens : spec_.input_width;
    const std::int64_t last = flow(spec_.root, "", first);
    // cross_entropy takes logits over the vocabulary.
    const std::int64_t wanted = spec_.loss == LossKind::cross_entropy ? spec_.vocabulary : spec_.output_width;
    // The last node must produce this width: no projection is added.
    if (last != wanted) {
      fail_model("", "the last module gives width " + width_text(last) + ", but the loss " +
                         (spec_.loss == LossKind::cross_entropy ? "cross_entropy needs the vocabulary, "
                                                                : "mse needs the output width, ") +
                         std::to_string(wanted));
    }
  }

 private:
  static std::string width_text(std::int64_t width) {
    return width == kTokens ? "of token ids" : std::to_string(width);
  }

  void check_header() const {
    if (spec_.input == InputKind::tokens) {
      // With a single token the loss is always 0.
      if (spec_.vocabulary < 2)
        fail_model("input", "vocabulary " + std::to_string(spec_.vocabulary) + " is below 2");
      positive("input", "vocabulary", spec_.vocabulary);
      positive("input", "context", spec_.context);
    } else {
      positive("input", "width", spec_.input_width);
    }
    // The targets of cross_entropy are the next tokens.
    if (spec_.loss == LossKind::cross_entropy && spec_.input != InputKind::tokens) {
      fail_model("loss", "cross_entropy needs token input; use \"mse\" for vectors");
    }
    if (spec_.loss == LossKind::mse) {
      if (spec_.input != InputKind::vectors)
        fail_model("loss", "mse needs vector input; use \"cross_entropy\"");
      positive("loss", "width", spec_.output_width);
    }
  }

  /// Collects paths of modules and weights, and checks the rules that need no width.
  void collect(const NodeSpec& node, const std::string& path) {
    std::set<std::string> names;
    collect_children(node, path, names);
  }

  // `names` is shared by a module and the functional nodes in it: their children have paths on the same
  // level, so all these names must differ.
  void collect_children(const NodeSpec& node, const std::string& path, std::set<std::string>& names) {
    const bool composite = node.kind == NodeKind::sequential || node.kind == NodeKind::list ||
                           node.kind == NodeKind::residual || node.kind == NodeKind::embedding_sum ||
                           node.kind == NodeKind::conditional;
    // Other kinds never run children.
    if (!composite && !node.children.empty()) {
      fail_model(path, std::string("a \"") + kind_name(node.kind) + "\" has no children");
    }
    // Without children it would be the identity, which is surely a mistake.
    if (composite && node.children.empty()) {
      fail_model(path, std::string("a \"") + kind_name(node.kind) + "\" needs at least one child");
    }
    for (const NodeSpec& child : node.children) {
      if (!is_module(child)) {
        // A name would suggest a path component that no parameter has.
        if (!child.name.empty()) {
          fail_model(join_path(path, child.name), std::string("a functional \"") + kind_name(child.kind) +
                                                      "\" has no name: it adds nothing to module paths");
        }
        if (!child.returns.empty()) {
          fail_model(path, std::string("a functional \"") + kind_name(child.kind) +
                               "\" returns no parameter; say it at the module that has it");
        }
        // Functional: same path, same set of names.
        collect_children(child, path, names);
        continue;
      }
      // Nothing calls a list: its parent runs the modules in it.
      if (child.kind == NodeKind::list && !child.returns.empty()) {
        fail_model(join_path(path, child.name), "a list has no forward that could return a parameter");
      }
      if (child.name.empty()) {
        fail_model(path, std::string("a child of kind \"") + kind_name(child.kind) + "\" has no name");
      }
      // A dot separates the levels of a path: with a dot in a name, two modules could have the same path.
      if (child.name.find('.') != std::string::npos) {
        fail_model(join_path(path, child.name), "a name must not hold a dot; nest modules instead");
      }
      // Unique names on each level make unique paths.
      if (!names.insert(child.name).second) {
        fail_model(join_path(path, child.name), "two modules have this path; rename one");
      }
      const std::string child_path = join_path(path, child.name);
      // For `reuse`, whose target may be any module of the tree.
      modules_.emplace(child_path, &child);
      // Only weights that a module owns: a tied weight has its owner's name, and biases and norms are no
      // matrices.
      if ((child.kind == NodeKind::linear || child.kind == NodeKind::embedding) && child.weight_of.empty()) {
        weights_.emplace(child_path + ".weight", &child);
      }
      // A module starts a new level of names.
      collect(child, child_path);
    }
  }

  // At most 2^40. The product of two extents may exceed 64 bits, which Numbering::add() checks before it
  // multiplies.
  void positive(const std::string& path, const char* what, std::int64_t value) const {
    if (value < 1 || value > kMaxElems) {
      fail_model(path, std::string(what) + " is " + std::to_string(value) +
                           "; it must be at least 1 and at most 2^40");
    }
  }

  // `width` is the input's; returns the output's. Nodes run in order, each on the result of the previous one.
  std::int64_t flow_children(const NodeSpec& node, const std::string& path, std::int64_t width) {
    for (const NodeSpec& child : node.children) {
      width = flow(child, is_module(child) ? join_path(path, child.name) : path, width);
    }
    return width;
  }

  // kTokens differs from every width, so this also rejects token ids where vectors are expected.
  void expect_width(const std::string& path, const NodeSpec& node, std::int64_t got,
                    std::int64_t wanted) const {
    if (got != wanted) {
      fail_model(path, std::string("\"") + kind_name(node.kind) + "\" takes width " + std::to_string(wanted) +
                           ", but gets " + width_text(got) + " from what runs before it");
    }
  }

  std::int64_t flow(const NodeSpec& node, const std::string& path, std::int64_t width) {
    switch (node.kind) {
      case NodeKind::sequential:
      case NodeKind::list:
        return flow_children(node, path, width);
      case NodeKind::linear:
        positive(path, "in", node.in);
        positive(path, "out", node.out);
        expect_width(path, node, width, node.in);
        return node.out;
      // Written so that NaN is rejected as well.
      case NodeKind::layer_norm:
        positive(path, "width", node.out);
        if (!(node.epsilon > 0)) fail_model(path, "epsilon must be above 0");
        expect_width(path, node, width, node.out);
        return width;
      case NodeKind::embedding:
        return flow_embedding(node, path, width);
      case NodeKind::gelu:
      case NodeKind::relu:
        if (width == kTokens) fail_model(path, "an activation cannot run on token ids");
        return width;
      case NodeKind::residual:
      // Both need equal input and output widths: a residual adds its input, a conditional may be skipped.
      case NodeKind::conditional: {
        const std::int64_t after = flow_children(node, path, width);
        if (after != width || width == kTokens) {
          fail_model(path, std::string("the children of a \"") + kind_name(node.kind) +
                               "\" must keep the width " + width_text(width) + ", but give " +
                               width_text(after));
        }
        return width;
      }
      case NodeKind::attention:
        return flow_attention(node, path, width);
      case NodeKind::embedding_sum:
        return flow_embedding_sum(node, path, width);
      // A linear's weight is [out, in]. An embedding's, [rows, width], read as a linear maps width to rows:
      // the logits of a tied model.
      case NodeKind::functional_linear: {
        const auto found = weights_.find(node.weight_of);
        if (found == weights_.end()) {
          fail_model(path, "functional_linear reads \"" + node.weight_of +
                               "\", which is no weight of a linear or embedding; give the full path, such as "
                               "\"wte.weight\"");
        }
        const NodeSpec& owner = *found->second;
        const bool linear = owner.kind == NodeKind::linear;
        expect_width(path, node, width, linear ? owner.in : owner.out);
        return linear ? owner.out : owner.in;
      }
      case NodeKind::reuse:
        return flow_reuse(node, path, width);
    }
    return width;
  }

  std::int64_t flow_embedding(const NodeSpec& node, const std::string& path, std::int64_t width) const {
    positive(path, "rows", node.in);
    positive(path, "width", node.out);
    if (width != kTokens)
      fail_model(path, "an embedding looks up token ids, but gets width " + width_text(width));
    // Positions run to the context, ids to the vocabulary: a smaller table would be read out of bounds.
    const bool positions = node.lookup == Lookup::positions;
    const std::int64_t least = positions ? spec_.context : spec_.vocabulary;
    if (node.in < least) {
      fail_model(path, "rows is " + std::to_string(node.in) + ", below the " +
                           (positions ? "context " : "vocabulary ") + std::to_string(least));
    }
    return node.out;
  }

  std::int64_t flow_embedding_sum(const NodeSpec& node, const std::string& path, std::int64_t width) {
    std::int64_t sum = 0;
    for (const NodeSpec& child : node.children) {
      if (child.kind != NodeKind::embedding) {
        fail_model(path, std::string("the children of an embedding_sum are embeddings, not \"") +
                             kind_name(child.kind) + "\"");
      }
      // Each embedding looks up the input itself, so all get `width`. sum == 0 marks the first.
      const std::int64_t out = flow(child, join_path(path, child.name), width);
      if (sum != 0 && out != sum) {
        fail_model(join_path(path, child.name), "width " + std::to_string(out) +
                                                    " differs from the other embeddings of the sum, " +
                                                    std::to_string(sum));
      }
      sum = out;
    }
    return sum;
  }

  std::int64_t flow_attention(const NodeSpec& node, const std::string& path, std::int64_t width) const {
    if (spec_.input != InputKind::tokens) fail_model(path, "attention needs sequences: use token input");
    positive(path, "heads", node.heads);
    // [B, T, 3C] in, [B, T, C] out; the heads share C equally.
    if (width == kTokens || width % 3 != 0) {
      fail_model(
          path, "attention takes queries, keys and values side by side (3 times the width), but gets width " +
                    width_text(width));
    }
    const std::int64_t channels = width / 3;
    if (channels % node.heads != 0) {
      fail_model(path,
                 std::to_string(node.heads) + " heads do not divide the width " + std::to_string(channels));
    }
    return channels;
  }

  std::int64_t flow_reuse(const NodeSpec& node, const std::string& path, std::int64_t width) {
    const auto found = modules_.find(node.target);
    if (found == modules_.end()) fail_model(path, "reuse: there is no module \"" + node.target + "\"");
    // A module that contains this node would recurse for ever. With the dot: "a.b" does not contain "a.bc".
    const std::string prefix = node.target + ".";
    if (path == node.target || path.compare(0, prefix.size(), prefix) == 0) {
      fail_model(path, "reuse: \"" + node.target + "\" contains this node");
    }
    // Recursion through another module: "a" reuses "b", in which a node reuses "a".
    if (reusing_.count(node.target) != 0) fail_model(path, "reuse: \"" + node.target + "\" reuses itself");
    // A list has no forward.
    if (found->second->kind == NodeKind::list) {
      fail_model(path, "reuse: \"" + node.target + "\" is a list; name the modules in it");
    }
    // The target's own nodes may reuse others: the set holds the modules being visited, to detect cycles.
    reusing_.insert(node.target);
    const std::int64_t after = flow(*found->second, node.target, width);
    reusing_.erase(node.target);
    return after;
  }

  const ModelSpec& spec_;
  std::map<std::string, const NodeSpec*> modules_;
  std::map<std::string, const NodeSpec*> weights_;
  std::set<std::string> reusing_;
};

}  // namespace

void check_model(const ModelSpec& spec) { Checker(spec).run(); }

}  // namespace shardscope::plan
