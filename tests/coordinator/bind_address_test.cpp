#include "coordinator/bind_address.hpp"

#include <gtest/gtest.h>

namespace kvsweep::coordinator {
namespace {

TEST(BindAddress, LoopbackIsFreeEverythingElseNeedsInsecure) {
  for (const char* own : {"tcp://127.0.0.1:5555", "tcp://127.0.0.1:*", "tcp://127.8.9.1:0",
                          "tcp://localhost:80", "tcp://[::1]:5555", "ipc:///tmp/socket"}) {
    EXPECT_TRUE(check_bind(own, false).ok()) << own;
  }
  for (const char* open :
       {"tcp://0.0.0.0:5555", "tcp://*:5555", "tcp://10.0.0.1:5555", "tcp://eth0:5555",
        "tcp://[::]:5555", "tcp://127.evil.example:5555", "tcp://localhost.example:5555"}) {
    const Status refused = check_bind(open, false);
    ASSERT_FALSE(refused.ok()) << open;
    EXPECT_NE(refused.error().message.find("--insecure"), std::string::npos) << open;
    EXPECT_NE(refused.error().message.find(open), std::string::npos) << open;
    EXPECT_TRUE(check_bind(open, true).ok()) << open;
  }
}

TEST(BindAddress, OtherFormsAreRefused) {
  for (const char* bad : {"", "127.0.0.1:5555", "tcp://", "tcp://:5555", "tcp://127.0.0.1",
                          "tcp://127.0.0.1:", "tcp://127.0.0.1:http", "tcp://127.0.0.1:70000",
                          "tcp://127.0.0.1:-1", "udp://127.0.0.1:1", "inproc://x", "ipc://"}) {
    EXPECT_FALSE(check_bind(bad, true).ok()) << bad;
  }
}

TEST(BindAddress, LocalProcessesConnectToTheLoopback) {
  EXPECT_EQ(local_address("tcp://0.0.0.0:5555"), "tcp://127.0.0.1:5555");
  EXPECT_EQ(local_address("tcp://[::]:5555"), "tcp://[::1]:5555");
  EXPECT_EQ(local_address("tcp://127.0.0.1:41"), "tcp://127.0.0.1:41");
}

TEST(NumericLoopback, OnlyLocalhostChanges) {
  EXPECT_EQ(numeric_loopback("tcp://localhost:5555"), "tcp://127.0.0.1:5555");
  EXPECT_EQ(numeric_loopback("tcp://localhost:*"), "tcp://127.0.0.1:*");
  for (const char* other : {"tcp://127.0.0.1:1", "tcp://localhost.example:5", "ipc:///tmp/s"}) {
    EXPECT_EQ(numeric_loopback(other), other);
  }
}

}  // namespace
}  // namespace kvsweep::coordinator
