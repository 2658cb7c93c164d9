#include "runtime/profile/kernel_name.h"

#include <gtest/gtest.h>

namespace shardscope::profile {
namespace {

TEST(KernelName, IsWithoutNamespaceArgumentsAndResult) {
  EXPECT_EQ(kernel_name("_ZN10shardscope7kernels4cuda12_GLOBAL__N_110layer_normIfEEvPT_PKS4_l"),
            "layer_norm<float>");
  EXPECT_EQ(kernel_name("void a::b<int, c::d>::e<(f)1>(g::h*, int)"), "e<(f)1>");
  EXPECT_EQ(kernel_name("void (anonymous namespace)::copy(float*)"), "copy");
}

TEST(KernelName, LeavesWhatIsNoCxxNameAsItIs) {
  EXPECT_EQ(kernel_name("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"),
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64");
  EXPECT_EQ(kernel_name("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
            "ncclDevKernel_AllGather_RING_LL");
  EXPECT_EQ(kernel_name("_Zbroken"), "_Zbroken");
  EXPECT_EQ(kernel_name(""), "");
  EXPECT_EQ(kernel_name("a::"), "a::");
}

TEST(KernelName, IsBounded) {
  const std::string name = kernel_name("void cutlass::Kernel<" + std::string(4000, 'x') + ">(int)");
  EXPECT_EQ(name.size(), kMostOfName);
  EXPECT_EQ(name.substr(0, 8), "Kernel<x");
  EXPECT_EQ(name.substr(name.size() - 3), "...");
}

}  // namespace
}  // namespace shardscope::profile
