// A panel without a display, by the words that stand in it: read back from the letters that were drawn.
#pragma once

#include <imgui_internal.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "app/gui/platform/frame.h"

namespace shardscope::gui {

class Written {
 public:
  Written(AppState& app, std::string panel, float width, float height) : app_(app), panel_(std::move(panel)) {
    ImGuiIO& io = ImGui::GetIO();
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures | ImGuiBackendFlags_RendererHasVtxOffset;
    io.DisplaySize = {width, height};
    frames();
  }
  /// What another frame shows after whatever is done to the state; some, for what takes one more to settle.
  void frames(int count = 4) {
    for (; count > 0; --count) {
      ImGui::GetIO().DeltaTime = kFrame_s;
      data_ = frame_.build(app_, panel_, seconds_ += kFrame_s);
    }
    read();
  }
  void point_at(ImVec2 at) {
    ImGui::GetIO().AddMousePosEvent(at.x, at.y);
    frames();
  }
  void click(ImVec2 at) {
    point_at(at);
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddMouseButtonEvent(0, down);
      frames(1);
    }
    frames();
  }
  /// Where the first letter of these words stands, spaces aside; nullopt: they do not stand there in a row.
  [[nodiscard]] std::optional<ImVec2> place_of(std::string_view words) const {
    return place(text_.find(without_spaces(words)));
  }
  /// The last time that they stand there.
  [[nodiscard]] std::optional<ImVec2> last_place_of(std::string_view words) const {
    return place(text_.rfind(without_spaces(words)));
  }
  [[nodiscard]] bool has(std::string_view words) const { return place_of(words).has_value(); }
  /// All of it, without spaces: for messages of tests.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] Frame& frame() { return frame_; }

 private:
  static constexpr float kFrame_s = 1.0F / 60;
  using Corners = std::tuple<float, float, float, float>;  ///< of a letter in the texture of all of them

  [[nodiscard]] std::optional<ImVec2> place(std::size_t found) const {
    return found == std::string::npos ? std::nullopt : std::optional(places_[found]);
  }
  static std::string without_spaces(std::string_view words) {
    std::string out(words);
    std::erase(out, ' ');
    return out;
  }

  void read() {
    std::map<Corners, unsigned> letters;
    auto& fonts = ImGui::GetIO().Fonts->Builder->BakedPool;
    for (int i = 0; i < fonts.Size; ++i) {
      for (const ImFontGlyph& glyph : fonts[i].Glyphs) {
        if (glyph.Visible != 0) letters[{glyph.U0, glyph.V0, glyph.U1, glyph.V1}] = glyph.Codepoint;
      }
    }
    text_.clear();
    places_.clear();
    for (const ImDrawList* list : data_->CmdLists) {
      const ImVector<ImDrawVert>& corner = list->VtxBuffer;
      for (int i = 0; i + 3 < corner.Size;) {
        const ImVec2 first = corner[i].uv, third = corner[i + 2].uv;
        const auto letter = letters.find({first.x, first.y, third.x, third.y});
        if (letter == letters.end() || corner[i + 1].uv.x != third.x || corner[i + 3].uv.y != third.y) {
          ++i;
          continue;
        }
        char bytes[5];
        text_.append(bytes, static_cast<std::size_t>(ImTextCharToUtf8(bytes, letter->second)));
        places_.resize(text_.size(), {(corner[i].pos.x + corner[i + 2].pos.x) / 2,
                                      (corner[i].pos.y + corner[i + 2].pos.y) / 2});
        i += 4;
      }
    }
  }

  AppState& app_;
  std::string panel_;
  Frame frame_;  ///< makes ImGui's context
  double seconds_ = 0;
  const ImDrawData* data_ = nullptr;
  std::string text_;
  std::vector<ImVec2> places_;  ///< of each byte of it
};

}  // namespace shardscope::gui
