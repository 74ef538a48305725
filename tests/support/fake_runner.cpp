#include "tests/support/fake_runner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <new>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "core/hash.hpp"
#include "core/rng.hpp"

namespace kvsweep::test {

namespace {

double loss_of(Codec codec) {
  switch (info(codec).bits) {
    case 2:
      return 0.1;
    case 4:
      return 0.02;
    case 8:
      return 0.004;
    default:
      return 0;
  }
}

double jitter(int64_t example) {
  return Rng(7, "fake/" + std::to_string(example)).uniform();
}

void append_line(const std::string& path, const std::string& line) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) abort();
  close(fd);
}

bool first_to_create(const std::string& path) {
  return !path.empty() && open(path.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0644) >= 0;
}

// Of the whole unit: a result that failed has no measurements.
wire::UnitResult failure(ErrorCode code, const std::string& message) {
  wire::UnitResult result;
  result.failure = wire::UnitFailure{code, message};
  return result;
}

void sleep_ms(int64_t ms, const std::atomic<bool>& cancel) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (!cancel && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min<int64_t>(ms, 5)));
  }
}

}  // namespace

FakeOptions fake_options_from_environment() {
  std::map<std::string, std::string> values;
  const char* text = std::getenv("KVSWEEP_FAKE");
  std::istringstream words(text != nullptr ? text : "");
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::runtime_error("KVSWEEP_FAKE: " + word);
    values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  FakeOptions options;
  const auto number = [&](const char* key, int64_t& value) {
    if (values.contains(key)) value = std::stoll(values[key]);
  };
  const auto word = [&](const char* key, std::string& value) {
    if (values.contains(key)) value = values[key];
  };
  number("examples", options.examples);
  number("ms", options.ms);
  number("die_at", options.die_at);
  number("hang_at", options.hang_at);
  number("oom_at", options.oom_at);
  number("throw_at", options.throw_at);
  word("class", options.numerics_class);
  word("data", options.data);
  word("log", options.log);
  word("die_once", options.die_once);
  word("hang_once", options.hang_once);
  options.nan_k2 = values.contains("nan_k2");
  options.bad_k2 = values.contains("bad_k2");
  return options;
}

double fake_damage(const PrecisionMap& map) {
  double sum = 0;
  double weights = 0;
  for (size_t layer = 0; layer < map.layers.size(); ++layer) {
    const double weight = layer == 0 ? 3 : 1;
    const std::vector<Pair>& heads = map.layers[layer].pairs();
    for (const Pair& pair : heads) {
      sum += weight * (loss_of(pair.k) + loss_of(pair.v) / 2) / static_cast<double>(heads.size());
    }
    weights += weight;
  }
  return sum / weights;
}

double fake_agreement(const PrecisionMap& map, int64_t example) {
  return 1 - fake_damage(map) * (0.5 + jitter(example));
}

std::string fake_example_hash(const std::string& data, const TaskProtocol& protocol,
                              int64_t example) {
  return sha256_hex(fmt::format("{}/{}/{}/{}", data, protocol.name, protocol.split, example));
}

wire::UnitResult FakeRunner::describe(const wire::Unit& unit) const {
  wire::Description description{.examples = options_.examples};
  for (int64_t i = 0; i < options_.examples; ++i) {
    description.example_hashes.push_back(fake_example_hash(options_.data, unit.protocol, i));
  }
  wire::UnitResult result;
  result.description = std::move(description);
  return result;
}

void FakeRunner::inject_faults() {
  ++units_;
  if (units_ == options_.die_at) kill(getpid(), SIGKILL);
  if (first_to_create(options_.die_once)) kill(getpid(), SIGKILL);
  const bool hang = units_ == options_.hang_at || first_to_create(options_.hang_once);
  while (hang) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (units_ == options_.oom_at) throw std::bad_alloc();
  if (units_ == options_.throw_at) throw std::runtime_error("ordered to throw");
}

Measurement FakeRunner::measure(const wire::Unit& unit, const PrecisionMap& map,
                                int64_t example) const {
  Measurement m{.example = example,
                .example_hash = fake_example_hash(options_.data, unit.protocol, example)};
  m.prompt_tokens = 100;
  m.output_tokens = 4;
  m.cache_bytes = 4096;
  const double damage = fake_damage(map);
  if (unit.mode == RunMode::forced) {
    const auto& reference = unit.references.at(example).tokens;
    // Proof that the baseline's own output travelled here.
    if (reference.empty() || reference.front() != example + 1) {
      throw std::runtime_error("the reference is not the baseline's output");
    }
    m.token_agreement = fake_agreement(map, example);
    m.kl = damage * jitter(example);
    m.nll = 1 + damage;
    const bool k2 = info(map.layers.front().of(0).k).bits == 2;
    if (options_.nan_k2 && k2) m.kl = std::numeric_limits<double>::quiet_NaN();
    return m;
  }
  const bool right = 10 * damage * jitter(example) < 1;
  m.tokens = {static_cast<int32_t>(example + 1), 2, 3, right ? 4 : 5};
  m.answer = right ? std::to_string(example) : "wrong";
  m.text = "the answer is " + m.answer;
  m.exact_match = right && example % 2 == 0 ? 1 : 0;
  return m;
}

wire::UnitResult FakeRunner::run(const wire::Unit& unit, service::UnitCounters& counters,
                                 const std::atomic<bool>& cancel) {
  if (unit.kind == wire::UnitKind::describe) return describe(unit);
  inject_faults();
  counters.total = static_cast<int64_t>(unit.examples.size() * unit.maps.size());
  wire::UnitResult result;
  result.model_hash = unit.model_hash;
  result.protocol_hash = protocol_hash(unit.protocol, unit.mode);
  result.base = unit.base;
  for (const PrecisionMap& map : unit.maps) {
    if (options_.bad_k2 && info(map.layers.front().of(0).k).bits == 2) {
      return failure(ErrorCode::bad_input, "2-bit keys were forbidden");
    }
    wire::MapMeasurements measured{.map_id = map_id(map)};
    for (int64_t example : unit.examples) {
      sleep_ms(options_.ms, cancel);
      if (cancel) {
        return failure(ErrorCode::preempted, "asked to stop");
      }
      if (!options_.log.empty()) {
        append_line(options_.log, fmt::format("{} {} {} {}\n", measured.map_id, unit.protocol.split,
                                              example, to_string(unit.mode)));
      }
      measured.measurements.push_back(measure(unit, map, example));
      counters.done += 1;
      counters.tokens += 104;
    }
    result.maps.push_back(std::move(measured));
  }
  return result;
}

}  // namespace kvsweep::test
