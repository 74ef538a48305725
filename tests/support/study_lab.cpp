#include "tests/support/study_lab.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/fake_runner.hpp"

namespace kvsweep::test {

namespace {

// A port that was free a moment ago: a coordinator that is restarted must come back on its port.
int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no free port");
  }
  close(fd);
  return ntohs(address.sin_port);
}

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string program(const std::string& name) {
  return std::string(KVSWEEP_TEST_BIN) + "/" + name;
}

StudyLab::StudyLab(const LabSpec& spec)
    : endpoint_(fmt::format("tcp://127.0.0.1:{}", free_port())) {
  dir_.write("model/config.json", fmt::format(R"({{"architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": {}, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "hidden_size": 256, "max_position_embeddings": 8192}})",
                                              kLabLayers));
  dir_.write("model/model.safetensors", "weights");
  dir_.write("model/tokenizer.json", "{}");
  write_spec(spec);
}

void StudyLab::write_spec(const LabSpec& spec) {
  dir_.write("spec.yaml", fmt::format(R"(name: {}
model: {}
scheme: per-token
search: {{algorithm: nsga2, trials: {}, population: 6, seed: {}, groups: 4}}
objective_task: {{name: word_problems, split: search, examples: {}, metric: {}}}
{})",
                                      spec.name, model(), spec.trials, spec.seed, spec.examples,
                                      spec.metric, spec.extra));
}

Process StudyLab::coordinator(const std::vector<std::string>& options,
                              const std::map<std::string, std::string>& environment) {
  const std::string bound = path("endpoint");
  std::filesystem::remove(bound);
  Command command{
      .words = {program("run_coordinator"), database(), path("spec.yaml"), "bind=" + endpoint_,
                "endpoint_file=" + bound, "heartbeat_ms=100", "lease_ms=3000"},
      .environment = environment,
      .output = path("coordinator.log")};
  command.words.insert(command.words.end(), options.begin(), options.end());
  Process process(command);
  EXPECT_TRUE(
      eventually(30000, [&] { return std::filesystem::exists(bound) || !process.running(); }));
  return process;
}

std::map<std::string, std::string> StudyLab::fake(const std::string& words) const {
  return {{"KVSWEEP_FAKE", words + " log=" + path("runs.log")}};
}

Process StudyLab::worker(const std::string& id, const std::string& words) {
  return Process({.words = {program("fake_worker"), "--connect", endpoint_, "--worker-id", id},
                  .environment = fake(words),
                  .output = path(id + ".log")});
}

std::string StudyLab::output(const std::string& name) const {
  return slurp(path(name + ".log"));
}

store::Store StudyLab::open() const {
  auto store = store::Store::open(database(), {.allow_network_fs = true});
  if (!store.ok()) throw std::runtime_error(store.error().message);
  return std::move(store).value();
}

store::StudyRow StudyLab::study(const std::string& name) const {
  auto study = open().study(name);
  if (!study.ok()) throw std::runtime_error(study.error().message + "\n" + output("coordinator"));
  return *study;
}

std::vector<store::TrialRow> StudyLab::trials(const std::string& name) const {
  auto trials = open().trials(study(name).id);
  if (!trials.ok()) throw std::runtime_error(trials.error().message);
  std::erase_if(*trials, [](const store::TrialRow& trial) { return trial.number < 0; });
  return *trials;
}

int64_t StudyLab::told() const {
  const auto store = store::Store::open(database(), {.allow_network_fs = true});
  if (!store.ok()) return 0;
  const auto study = store->study("lab");
  if (!study.ok()) return 0;
  const auto trials = store->trials(study->id);
  if (!trials.ok()) return 0;
  return std::count_if(trials->begin(), trials->end(),
                       [](const store::TrialRow& trial) { return trial.tell_order >= 0; });
}

std::vector<std::vector<int>> StudyLab::genomes(const std::string& name) const {
  std::vector<std::vector<int>> genomes;
  for (const store::TrialRow& trial : trials(name)) genomes.push_back(trial.genome);
  return genomes;
}

int64_t StudyLab::events(const std::string& kind) const {
  const auto events = open().events(study().id, 100000);
  if (!events.ok()) throw std::runtime_error(events.error().message);
  return std::count_if(events->begin(), events->end(),
                       [&](const store::EventRow& event) { return event.kind == kind; });
}

std::vector<std::string> StudyLab::runs() const {
  std::ifstream file(path("runs.log"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

double expected_agreement(const PrecisionMap& map, int64_t examples) {
  double sum = 0;
  for (int64_t example = 0; example < examples; ++example) sum += fake_agreement(map, example);
  return sum / static_cast<double>(examples);
}

void expect_finished(const StudyLab& lab, int64_t count) {
  const store::StudyRow study = lab.study();
  EXPECT_EQ(study.status, store::StudyStatus::finished) << study.status_reason;
  const std::vector<store::TrialRow> trials = lab.trials();
  EXPECT_EQ(static_cast<int64_t>(trials.size()), count);
  const store::Store store = lab.open();
  std::set<std::string> maps;
  std::set<int64_t> tells;
  for (const store::TrialRow& trial : trials) {
    maps.insert(trial.map_id);
    tells.insert(trial.tell_order);
    if (trial.state == store::TrialState::failed) continue;
    const auto map = store.map_by_id(trial.map_id);
    ASSERT_TRUE(map.ok());
    // From the formula, not from what was recorded: a lost, doubled or mixed-up example shows.
    EXPECT_NEAR(*trial.metric, expected_agreement(*map, trial.examples), 1e-12);
    EXPECT_NEAR(*trial.loss, 1 - expected_agreement(*map, trial.examples), 1e-12);
  }
  EXPECT_EQ(static_cast<int64_t>(maps.size()), count) << "a map was evaluated twice";
  EXPECT_EQ(static_cast<int64_t>(tells.size()), count);
  EXPECT_EQ(*tells.begin(), 0);
  EXPECT_EQ(*tells.rbegin(), count - 1);
}

void expect_every_example_run_once(const StudyLab& lab) {
  const std::vector<std::string> runs = lab.runs();
  const std::set<std::string> distinct(runs.begin(), runs.end());
  EXPECT_EQ(runs.size(), distinct.size()) << "an example was run twice";
}

}  // namespace kvsweep::test
