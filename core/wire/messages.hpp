// Messages between coordinator (ROUTER) and workers (DEALER): CBOR maps with `v` (protocol
// version) and `t` (type), one ZeroMQ frame each (design §4.4). Everything received is validated
// by `decode` before anyone looks at it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/format.hpp"
#include "core/measurement.hpp"
#include "core/precision_map.hpp"
#include "core/result.hpp"
#include "core/task_protocol.hpp"

namespace kvsweep::wire {

inline constexpr int kProtocolVersion = 1;
inline constexpr int64_t kMaxMessageBytes = 64 << 20;

// worker -> coordinator, first message of a connection; answered by Welcome or Refuse.
struct Hello {
  std::string worker_id;  // stable across reconnects and restarts of the same worker
  std::string host;
  int64_t pid = 0;
  std::string version;         // of kvsweep-worker
  std::string device;          // "cpu", "cuda:0"
  std::string device_name;     // "Intel(R) Xeon(R) Processor"
  std::string numerics_class;  // device type, instruction set, compute type, library versions
  int threads = 0;
  int64_t memory_bytes = 0;
};

struct Welcome {
  std::string session;       // of this coordinator process
  int64_t heartbeat_ms = 0;  // how often to send Progress while connected
  int64_t lease_ms = 0;      // a lease lives this long after the last Progress that names it
};

// The worker must stop with `reason` on its standard error: another protocol version, a numerics
// class that does not fit, a duplicate live worker id.
struct Refuse {
  std::string reason;
};

// worker -> coordinator: "give me work". One lease at a time.
struct Ready {};

// What a unit asks for. `describe` reads the data set and returns its size and example hashes
// without a model; `measure` runs examples under maps.
enum class UnitKind : uint8_t { describe, measure };

// Teacher forcing: what the baseline produced for an example.
struct Reference {
  std::vector<int32_t> tokens;
};

struct Unit {
  std::string unit_id;
  UnitKind kind = UnitKind::measure;
  std::string model_dir;
  std::string model_hash;  // the worker refuses a folder with another hash (bad_input)
  BaseType base = BaseType::fp16;
  TaskProtocol protocol;
  RunMode mode = RunMode::generate;
  std::vector<PrecisionMap> maps;
  std::vector<int64_t> examples;            // indices in the split
  std::map<int64_t, Reference> references;  // example -> reference, for RunMode::forced
  // RunMode::generate: example -> what another map, the nearest the better, gave for it. Results
  // are the same without; an example may have none.
  std::map<int64_t, std::vector<int32_t>> drafts;
};

struct Lease {
  std::string lease_id;
  int attempt = 1;  // 1 = first
  Unit unit;
};

// worker -> coordinator every heartbeat_ms, from the compute thread's own counters.
struct LeaseProgress {
  std::string lease_id;
  int64_t done = 0;  // examples finished
  int64_t total = 0;
  int64_t tokens = 0;  // processed since the lease began
};
struct Progress {
  std::vector<LeaseProgress> leases;
};

struct MapMeasurements {
  std::string map_id;
  std::vector<Measurement> measurements;
};

struct UnitFailure {
  ErrorCode code = ErrorCode::internal;  // one of the seven failure classes
  std::string message;
};

struct Description {
  int64_t examples = 0;
  std::vector<std::string> example_hashes;  // index = example
};

// Resent until acknowledged. Exactly one of `failure`, `description`, `maps` says how it ended.
struct UnitResult {
  std::string lease_id;
  std::string unit_id;
  // With the example hashes, all that a measurement's key is made of: a coordinator that was
  // restarted and knows nothing of the lease can still record what is in here.
  std::string model_hash;
  std::string protocol_hash;
  BaseType base = BaseType::fp16;
  std::string numerics_class;
  bool batch_invariant = true;  // what the worker's start-up check found for this model
  std::vector<MapMeasurements> maps;
  std::optional<Description> description;
  std::optional<UnitFailure> failure;
  double wall_ms = 0;
};

struct Ack {
  std::string lease_id;
};

// worker -> coordinator: gives a lease back unfinished (preempted); never charged to the unit.
struct Release {
  std::string lease_id;
  std::string reason;
};

// coordinator -> worker: finish or release what you hold, then Bye.
struct Drain {};

// Either side is going away.
struct Bye {
  std::string reason;
};

using Message = std::variant<Hello, Welcome, Refuse, Ready, Lease, Progress, UnitResult, Ack,
                             Release, Drain, Bye>;

std::string_view type_name(const Message& message);  // "hello", ... ; UnitResult is "result"

std::string encode(const Message& message);  // CBOR bytes

// Error codes: conflict when `v` is another protocol version (message says both versions),
// bad_input for everything else that is malformed: not CBOR, too large, a missing or mistyped
// field, an unknown type, an enum out of range, a count beyond the limits.
Result<Message> decode(std::string_view bytes);

}  // namespace kvsweep::wire
