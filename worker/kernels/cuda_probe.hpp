// Is there a GPU that this binary can use? Answers in every build and never fails.
#pragma once

#include <string>

namespace kvsweep::kernels {

// Devices that can be used: 0 without CUDA in this build, without a driver or without a device.
int cuda_device_count();

// One line for a person:
//   "no CUDA in this build: using the CPU"
//   "CUDA 13.0, no driver (error 35): using the CPU"
//   "CUDA 13.0, 2 devices: NVIDIA H200, NVIDIA H200; INT4 kernel ok"
// With a device it also runs the kernel on a small page and compares it with the CPU. Thread-safe.
std::string cuda_status();

}  // namespace kvsweep::kernels
