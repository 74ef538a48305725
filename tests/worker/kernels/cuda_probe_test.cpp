#include "worker/kernels/cuda_probe.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kvsweep::kernels {
namespace {

TEST(CudaProbe, SaysWhatThisBuildAndMachineOffer) {
  const std::string status = cuda_status();
#if defined(KVSWEEP_CUDA)
  EXPECT_EQ(status.rfind("CUDA 13.", 0), 0u) << status;
  if (cuda_device_count() == 0) {
    EXPECT_NE(status.find(": using the CPU"), std::string::npos) << status;
  } else {
    EXPECT_NE(status.find("INT4 kernel ok"), std::string::npos) << status;
  }
#else
  EXPECT_EQ(cuda_device_count(), 0);
  EXPECT_EQ(status, "no CUDA in this build: using the CPU");
#endif
}

TEST(CudaProbe, AnswersTheSameWhenAskedAgain) {
  EXPECT_EQ(cuda_status(), cuda_status());
  EXPECT_EQ(cuda_device_count(), cuda_device_count());
}

}  // namespace
}  // namespace kvsweep::kernels
