#include "core/clock.hpp"

#include <fmt/format.h>

#include <chrono>

namespace kvsweep {
namespace {

template <typename ClockType>
int64_t milliseconds_now() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  return duration_cast<milliseconds>(ClockType::now().time_since_epoch()).count();
}

}  // namespace

int64_t SystemClock::utc_ms() const {
  return milliseconds_now<std::chrono::system_clock>();
}

int64_t SystemClock::steady_ms() const {
  return milliseconds_now<std::chrono::steady_clock>();
}

std::string format_utc(int64_t utc_ms) {
  using namespace std::chrono;
  const sys_time<milliseconds> time{milliseconds{utc_ms}};
  const sys_days day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

}  // namespace kvsweep
