#include "app/export/html_template.h"

#include <set>
#include <stdexcept>

namespace shardscope::exporter {
namespace {

constexpr std::string_view kOpen = "{{", kClose = "}}", kSection = "<section>", kSectionEnd = "</section>";

struct Filled {
  std::string text;
  bool lacks = false;  ///< whether a value in it is empty
};

Filled fill(std::string_view part, const TemplateValues& values, std::set<std::string_view>& used) {
  Filled out;
  while (true) {
    const std::size_t open = part.find(kOpen);
    out.text += part.substr(0, open);
    if (open == std::string_view::npos) return out;
    part.remove_prefix(open + kOpen.size());
    const std::size_t close = part.find(kClose);
    if (close == std::string_view::npos) throw std::logic_error("template: {{ without }}");
    const auto value = values.find(part.substr(0, close));
    if (value == values.end())
      throw std::logic_error("template: no value for " + std::string(part.substr(0, close)));
    used.insert(value->first);
    out.lacks |= value->second.empty();
    out.text += value->second;
    part.remove_prefix(close + kClose.size());
  }
}

}  // namespace

std::string fill_template(std::string_view page, const TemplateValues& values) {
  std::set<std::string_view> used;
  std::string out;
  while (!page.empty()) {
    const std::size_t section = page.find(kSection);
    out += fill(page.substr(0, section), values, used).text;
    if (section == std::string_view::npos) break;
    page.remove_prefix(section);
    const std::size_t end = page.find(kSectionEnd);
    if (end == std::string_view::npos) throw std::logic_error("template: <section> without </section>");
    const Filled filled = fill(page.substr(0, end + kSectionEnd.size()), values, used);
    page.remove_prefix(end + kSectionEnd.size());
    if (!filled.lacks)
      out += filled.text;
    else if (page.starts_with('\n'))
      page.remove_prefix(1);  // the line break after the removed section
  }
  for (const auto& [name, value] : values) {
    if (!used.contains(name)) throw std::logic_error("template: nothing shows the value " + name);
  }
  return out;
}

}  // namespace shardscope::exporter
