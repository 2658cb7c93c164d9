// Fills a page's template: `{{name}}` stands for a value.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace shardscope::exporter {

/// Name -> HTML, inserted as it is: who makes it escapes what others wrote.
using TemplateValues = std::map<std::string, std::string, std::less<>>;

/// Replaces every `{{name}}` by its value. A `<section>...</section>` in which a value is empty is left out,
/// so that a run has no empty sections. Values are not searched for names again. Throws std::logic_error
/// where the two do not fit: a name without a value, a value that the page does not use, braces that do not
/// end.
[[nodiscard]] std::string fill_template(std::string_view page, const TemplateValues& values);

}  // namespace shardscope::exporter
