// Short names of kernels.
#pragma once

#include <string>
#include <string_view>

namespace shardscope::profile {

/// "void kernels::(anonymous namespace)::layer_norm<float, 4>(float*, int)", mangled or not, becomes
/// "layer_norm<float, 4>": without return type, namespaces and arguments. Names that are not C++ stay as they
/// are; at most `kMost` characters.
inline constexpr std::size_t kMostOfName = 160;
[[nodiscard]] std::string kernel_name(std::string_view symbol);

}  // namespace shardscope::profile
