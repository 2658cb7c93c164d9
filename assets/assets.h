// What the programs show and hand out that is not code, as files of this folder; embedded by the build
// (assets/CMakeLists.txt, cmake/EmbedText.cmake). Descriptions of machines are read from files at run time.
#pragma once

#include <string_view>

namespace shardscope::assets {

extern const std::string_view report_page;    ///< report/page.html: what html_template.h fills
extern const std::string_view report_style;   ///< report/report.css
extern const std::string_view report_script;  ///< report/report.js: draws the timeline
extern const std::string_view theme_dark;     ///< themes/dark.json
extern const std::string_view theme_light;    ///< themes/light.json
extern const std::string_view theme_dark_colour_blind;
extern const std::string_view theme_light_colour_blind;
extern const std::string_view layouts;               ///< layouts.json: the window's default workspaces
extern const std::string_view manual_page;           ///< man/shardscope.1.in
extern const std::string_view attach_sitecustomize;  ///< attach/sitecustomize.py

}  // namespace shardscope::assets
