// What should not arrive at the coordinator's socket, and what should not happen there.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/fake_runner.hpp"
#include "tests/support/raw_peer.hpp"
#include "tests/support/study_lab.hpp"

namespace kvsweep::test {
namespace {

wire::Hello hello(const std::string& id) {
  return {.worker_id = id,
          .host = "elsewhere",
          .pid = 1,
          .version = "0",
          .device = "cpu",
          .device_name = "none",
          .numerics_class = "fake/1",
          .threads = 1};
}

void send_rubbish(RawPeer& peer, const std::string& endpoint) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    peer.send_bytes({bytes});
    if (i % 50 == 0) send_tcp(endpoint, bytes);
  }
  peer.send_bytes({""});
  peer.send_bytes({"", ""});
  peer.send_bytes({"a", "b", "c"});
  std::string cut = wire::encode(hello("w9"));
  for (size_t length = 0; length < cut.size(); ++length) peer.send_bytes({cut.substr(0, length)});
  peer.send_bytes({std::string(1 << 20, '\x9f')});  // arrays without end, one in another
}

TEST(Hostile, RubbishIsDroppedAndTheStudyGoesOn) {
  StudyLab lab;
  Process coordinator = lab.coordinator();
  RawPeer peer(lab.endpoint());
  send_rubbish(peer, lab.endpoint());
  // Well-formed messages from somebody who never said Hello, or that only a coordinator sends.
  peer.send(wire::Ready{});
  peer.send(wire::Release{"m-1#1", "because"});
  peer.send(wire::Progress{{{"m-1#1", 1, 2, 3}}});
  peer.send(wire::Drain{});
  Process worker = lab.worker("w1");
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 20);
  EXPECT_NE(lab.output("coordinator").find("dropped a message of peer"), std::string::npos);
}

// Somebody who follows the protocol and lies.
TEST(Hostile, WrongResultsAreRefused) {
  StudyLab lab;
  Process coordinator = lab.coordinator({"examples_per_unit=2"});
  Process worker = lab.worker("w1", "ms=30");
  ASSERT_TRUE(eventually(30000, [&] { return !lab.runs().empty(); }));
  RawPeer peer(lab.endpoint());
  peer.send(hello("liar"));
  ASSERT_TRUE(peer.expect<wire::Welcome>(10000));
  peer.send(wire::Ready{});
  const auto work = peer.expect<wire::Lease>(10000);
  ASSERT_TRUE(work);
  ASSERT_EQ(work->unit.kind, wire::UnitKind::measure);
  wire::UnitResult lie{.lease_id = work->lease_id,
                       .unit_id = work->unit.unit_id,
                       .model_hash = work->unit.model_hash,
                       .protocol_hash = protocol_hash(work->unit.protocol, work->unit.mode),
                       .base = work->unit.base,
                       .numerics_class = "fake/1"};
  Measurement m{.example = work->unit.examples[0], .example_hash = std::string(64, '0')};
  m.exact_match = 1;
  lie.maps.push_back({map_id(work->unit.maps[0]), {m}});
  peer.send(lie);  // an example of another data set
  EXPECT_TRUE(peer.expect<wire::Ack>(10000));
  lie.maps[0].measurements[0].example = 1 << 20;  // an example that does not exist
  peer.send(lie);
  EXPECT_TRUE(peer.expect<wire::Ack>(10000));
  lie.model_hash = std::string(64, 'f');  // of another model
  peer.send(lie);
  EXPECT_TRUE(peer.expect<wire::Ack>(10000));
  peer.send(wire::Bye{"done lying"});

  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 20);
  EXPECT_EQ(lab.events("result_refused"), 3);
  EXPECT_NE(lab.output("coordinator").find("reads another data set"), std::string::npos);
}

TEST(Hostile, ResultSentTwiceCountsOnce) {
  StudyLab lab({.trials = 4});
  Process coordinator = lab.coordinator({"examples_per_unit=12"});
  RawPeer peer(lab.endpoint());
  FakeRunner runner({});
  service::UnitCounters counters;
  const std::atomic<bool> cancel{false};
  peer.send(hello("w1"));
  ASSERT_TRUE(peer.expect<wire::Welcome>(10000));
  // 1 description, 2 runs of the baseline; of 4 maps one is the baseline again.
  const int units = 3 + 4;
  for (int i = 0; i < units; ++i) {
    peer.send(wire::Ready{});
    const auto lease = peer.expect<wire::Lease>(5000);
    if (!lease) break;
    wire::UnitResult result = runner.run(lease->unit, counters, cancel);
    result.lease_id = lease->lease_id;
    result.unit_id = lease->unit.unit_id;
    result.numerics_class = "fake/1";
    peer.send(result);
    peer.send(result);
    EXPECT_TRUE(peer.expect<wire::Ack>(10000));  // of the first; the second changes nothing
  }
  ASSERT_EQ(coordinator.wait(60000), 0) << lab.output("coordinator");
  expect_finished(lab, 4);
}

TEST(Hostile, AnotherProtocolVersionIsRefusedWithBoth) {
  StudyLab lab;
  Process coordinator = lab.coordinator();
  RawPeer peer(lab.endpoint());
  std::string bytes = wire::encode(hello("w1"));
  // "v" is the text string 0x61 'v' followed by the small integer 1.
  const size_t at = bytes.find(std::string("\x61v\x01", 3));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 2] = 9;
  peer.send_bytes({bytes});
  const auto refuse = peer.expect<wire::Refuse>(10000);
  ASSERT_TRUE(refuse);
  EXPECT_NE(refuse->reason.find('9'), std::string::npos) << refuse->reason;
  EXPECT_NE(refuse->reason.find(std::to_string(wire::kProtocolVersion)), std::string::npos)
      << refuse->reason;
}

TEST(Hostile, PortInUseIsOneSentenceWithTheAddress) {
  StudyLab lab;
  Process first = lab.coordinator();
  Process second({.words = {program("run_coordinator"), lab.path("other.db"), lab.path("spec.yaml"),
                            "bind=" + lab.endpoint()},
                  .output = lab.path("second.log")});
  EXPECT_EQ(second.wait(30000), 1);
  EXPECT_NE(lab.output("second").find("cannot listen on " + lab.endpoint()), std::string::npos)
      << lab.output("second");
}

TEST(Hostile, AddressesOfOthersNeedInsecure) {
  StudyLab lab;
  Process coordinator({.words = {program("run_coordinator"), lab.path("other.db"),
                                 lab.path("spec.yaml"), "bind=tcp://0.0.0.0:0"},
                       .output = lab.path("second.log")});
  EXPECT_EQ(coordinator.wait(30000), 1);
  EXPECT_NE(lab.output("second").find("--insecure"), std::string::npos) << lab.output("second");
}

}  // namespace
}  // namespace kvsweep::test
