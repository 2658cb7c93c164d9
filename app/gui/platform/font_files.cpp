#include "app/gui/platform/font_files.h"

#include <fontconfig/fontconfig.h>

#include <memory>

namespace shardscope::gui {

namespace {

struct Destroy {
  void operator()(FcPattern* pattern) const { FcPatternDestroy(pattern); }
};
using Pattern = std::unique_ptr<FcPattern, Destroy>;

}  // namespace

FontFile find_font_of(const char* language, char32_t letter) {
  const std::string query = std::string("sans:lang=") + language;
  const Pattern wanted(FcNameParse(reinterpret_cast<const FcChar8*>(query.c_str())));
  if (!wanted) return {};
  FcPatternAddBool(wanted.get(), FC_SCALABLE, FcTrue);
  FcPatternAddBool(wanted.get(), FC_VARIABLE, FcFalse);
  FcConfigSubstitute(nullptr, wanted.get(), FcMatchPattern);
  FcDefaultSubstitute(wanted.get());
  FcResult result = FcResultNoMatch;
  const Pattern found(FcFontMatch(nullptr, wanted.get(), &result));
  FcChar8* path = nullptr;
  FcCharSet* letters = nullptr;
  // Without a font of the language fontconfig gives any.
  if (!found || FcPatternGetCharSet(found.get(), FC_CHARSET, 0, &letters) != FcResultMatch ||
      FcCharSetHasChar(letters, letter) == FcFalse ||
      FcPatternGetString(found.get(), FC_FILE, 0, &path) != FcResultMatch)
    return {};
  FontFile out;
  out.path = reinterpret_cast<const char*>(path);
  FcPatternGetInteger(found.get(), FC_INDEX, 0, &out.index);
  return out;
}

FontFile find_font(const char* family, const char* weight) {
  const std::string query = std::string(family) + ":style=" + weight + ":weight=" + weight;
  const Pattern wanted(FcNameParse(reinterpret_cast<const FcChar8*>(query.c_str())));
  if (!wanted) return {};
  // Static outline fonts only: the rasterizer supports neither bitmaps nor variable fonts.
  FcPatternAddBool(wanted.get(), FC_SCALABLE, FcTrue);
  FcPatternAddBool(wanted.get(), FC_VARIABLE, FcFalse);
  FcConfigSubstitute(nullptr, wanted.get(), FcMatchPattern);
  FcDefaultSubstitute(wanted.get());
  FcResult result = FcResultNoMatch;
  const Pattern found(FcFontMatch(nullptr, wanted.get(), &result));
  FcChar8* path = nullptr;
  if (!found || FcPatternGetString(found.get(), FC_FILE, 0, &path) != FcResultMatch) return {};
  FontFile out;
  out.path = reinterpret_cast<const char*>(path);
  FcPatternGetInteger(found.get(), FC_INDEX, 0, &out.index);
  FcChar8* name = nullptr;
  for (int i = 0; FcPatternGetString(found.get(), FC_FAMILY, i, &name) == FcResultMatch; ++i)
    out.exact |= FcStrCmpIgnoreCase(name, reinterpret_cast<const FcChar8*>(family)) == 0;
  return out;
}

}  // namespace shardscope::gui
