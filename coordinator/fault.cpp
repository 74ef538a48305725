#include "coordinator/fault.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace kvsweep::coordinator {

namespace {

struct Fault {
  std::string point;
  int countdown = 0;
};

Fault read_fault() {
  const char* text = std::getenv("KVSWEEP_FAULT");
  if (text == nullptr) return {};
  const std::string spec = text;
  const size_t colon = spec.find(':');
  if (colon == std::string::npos) return {spec, 1};
  return {spec.substr(0, colon), std::atoi(spec.c_str() + colon + 1)};
}

}  // namespace

void fault_point(std::string_view point) {
  static Fault fault = read_fault();
  if (point == fault.point && --fault.countdown == 0) _exit(kFaultExit);
}

}  // namespace kvsweep::coordinator
