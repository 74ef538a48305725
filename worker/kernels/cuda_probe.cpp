#include "worker/kernels/cuda_probe.hpp"

#if defined(KVSWEEP_CUDA)

#include <cuda_runtime_api.h>

#include "worker/kernels/int4_self_check.hpp"

namespace kvsweep::kernels {
namespace {

std::string version_text(int version) {  // 13000 -> "13.0"
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string describe_error(cudaError_t error) {
  const std::string number = " (error " + std::to_string(static_cast<int>(error)) + ")";
  switch (error) {
    case cudaErrorInsufficientDriver: {
      int driver = 0;  // 0: none is installed
      if (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0) {
        return "the driver is for CUDA " + version_text(driver) + ", too old" + number;
      }
      return "no driver" + number;
    }
    case cudaErrorNoDevice:
      return "no device" + number;
    default:
      return std::string(cudaGetErrorString(error)) + number;
  }
}

std::string device_names(int count) {
  std::string names;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties;
    const bool known = cudaGetDeviceProperties(&properties, device) == cudaSuccess;
    names += (device == 0 ? "" : ", ") + std::string(known ? properties.name : "unknown");
  }
  return names;
}

}  // namespace

int cuda_device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string cuda_status() {
  const std::string build = "CUDA " + version_text(CUDART_VERSION) + ", ";
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return build + describe_error(error) + ": using the CPU";
  if (count == 0) return build + "no device: using the CPU";
  const std::string wrong = int4_self_check();
  return build + std::to_string(count) + (count == 1 ? " device: " : " devices: ") +
         device_names(count) + "; INT4 kernel " + (wrong.empty() ? "ok" : "failed: " + wrong);
}

}  // namespace kvsweep::kernels

#else

namespace kvsweep::kernels {

int cuda_device_count() {
  return 0;
}

std::string cuda_status() {
  return "no CUDA in this build: using the CPU";
}

}  // namespace kvsweep::kernels

#endif
