#include "app/gui/platform/png.h"

#include <png.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace shardscope::gui {

void write_png(const std::string& path, int width, int height, const std::vector<std::uint8_t>& rgba) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGBA;
  errno = 0;
  if (png_image_write_to_file(&image, path.c_str(), 0, rgba.data(), width * 4, nullptr) == 0) {
    const std::string reason = errno != 0 ? std::strerror(errno) : image.message;
    throw std::runtime_error("cannot write " + path + ": " + reason);
  }
}

}  // namespace shardscope::gui
