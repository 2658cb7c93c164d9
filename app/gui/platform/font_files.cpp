#include "app/gui/platform/font_files.h"

#include <fontconfig/fontconfig.h>

#include <memory>

namespace shardscope::gui {

namespace {

struct Destroy {
  void operator()(FcPattern* pattern) const { FcPatternDestroy(pattern); }
};
using Pattern = std::unique_ptr<FcPattern, Destroy>;

/// fontconfig's best match; null: it has no font at all.
Pattern match(const std::string& query) {
  const Pattern wanted(FcNameParse(reinterpret_cast<const FcChar8*>(query.c_str())));
  if (!wanted) return nullptr;
  // Static outline fonts only: the rasterizer supports neither bitmaps nor variable fonts.
  FcPatternAddBool(wanted.get(), FC_SCALABLE, FcTrue);
  FcPatternAddBool(wanted.get(), FC_VARIABLE, FcFalse);
  FcConfigSubstitute(nullptr, wanted.get(), FcMatchPattern);
  FcDefaultSubstitute(wanted.get());
  FcResult result = FcResultNoMatch;
  return Pattern(FcFontMatch(nullptr, wanted.get(), &result));
}

FontFile file_of(const Pattern& font) {
  FontFile out;
  FcChar8* path = nullptr;
  if (!font || FcPatternGetString(font.get(), FC_FILE, 0, &path) != FcResultMatch) return out;
  out.path = reinterpret_cast<const char*>(path);
  FcPatternGetInteger(font.get(), FC_INDEX, 0, &out.index);
  return out;
}

}  // namespace

FontFile find_font_of(const char* language, char32_t letter) {
  const Pattern found = match(std::string("sans:lang=") + language);
  FcCharSet* letters = nullptr;
  // Without a font of the language fontconfig gives any.
  if (!found || FcPatternGetCharSet(found.get(), FC_CHARSET, 0, &letters) != FcResultMatch ||
      FcCharSetHasChar(letters, letter) == FcFalse)
    return {};
  return file_of(found);
}

FontFile find_font(const char* family, const char* weight) {
  const Pattern found = match(std::string(family) + ":style=" + weight + ":weight=" + weight);
  FontFile out = file_of(found);
  if (out.path.empty()) return out;
  FcChar8* name = nullptr;
  for (int i = 0; FcPatternGetString(found.get(), FC_FAMILY, i, &name) == FcResultMatch; ++i)
    out.exact |= FcStrCmpIgnoreCase(name, reinterpret_cast<const FcChar8*>(family)) == 0;
  return out;
}

}  // namespace shardscope::gui
