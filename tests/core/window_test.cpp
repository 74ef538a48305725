// KVmix's window as its code computes it: floats, one step after another.
#include "core/window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kvsweep {
namespace {

// Exact tokens after every position of a prompt and 400 decoded tokens, by KVmix's own steps: the
// prompt leaves floor((n - floor(r n)) / G) G coded; a step with F exact tokens codes the largest
// multiple of G in F - floor(r F).
std::vector<int> published(int prompt, double share, int group) {
  int exact = prompt;
  const auto flush = [&] { exact -= (exact - static_cast<int>(share * exact)) / group * group; };
  flush();
  std::vector<int> windows{exact};
  for (int step = 0; step < 400; ++step) {
    ++exact;
    flush();
    windows.push_back(exact);
  }
  return windows;
}

TEST(KvmixWindow, EqualsThePublishedSteps) {
  for (const int prompt : {1, 31, 32, 33, 40, 41, 100, 1000, 1001}) {
    for (const int share : {1, 2, 3}) {
      const Window window{.block = 32, .rule = WindowRule::window_share, .share = share};
      const std::vector<int> expected = published(prompt, share / 10.0, 32);
      for (int step = 0; step <= 400; ++step) {
        const int64_t position = prompt - 1 + step;
        ASSERT_EQ(position + 1 - coded_tokens(window, position, prompt), expected[step])
            << "prompt " << prompt << ", share " << share << ", step " << step;
      }
    }
  }
}

// The collapse of the window: the share is of a window that shrinks, so 200 exact tokens become 41,
// then 10, and from then on between 7 and 38 (share 2 tenths, groups of 32).
TEST(KvmixWindow, CollapsesAfterThePrompt) {
  const Window window{.block = 32, .rule = WindowRule::window_share, .share = 2};
  const auto exact = [&](int step) { return 1000 + step - coded_tokens(window, 999 + step, 1000); };
  EXPECT_EQ(exact(0), 200);
  EXPECT_EQ(exact(1), 41);
  EXPECT_EQ(exact(2), 10);
  int64_t least = 1000;
  int64_t most = 0;
  for (int step = 3; step < 500; ++step) {
    least = std::min(least, exact(step));
    most = std::max(most, exact(step));
  }
  EXPECT_EQ(least, 7);
  EXPECT_EQ(most, 38);
}

}  // namespace
}  // namespace kvsweep
