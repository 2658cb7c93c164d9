// Fills an HTML template: each `{{name}}` is replaced by a value.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace shardscope::exporter {

/// Name -> HTML, inserted verbatim: the caller escapes untrusted text.
using TemplateValues = std::map<std::string, std::string, std::less<>>;

/// Replaces every `{{name}}` by its value. A `<section>...</section>` that contains an empty value is
/// removed, so that a page has no empty sections. Values are not scanned for names. Throws std::logic_error
/// where template and values do not match: a name without a value, a value that is not used, unclosed braces.
[[nodiscard]] std::string fill_template(std::string_view page, const TemplateValues& values);

}  // namespace shardscope::exporter
