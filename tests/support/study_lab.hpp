// StudyLab: a folder with a toy model, a spec and a database, and the processes of a study over it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/study_spec.hpp"
#include "store/store.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

namespace kvsweep::test {

inline constexpr int kLabLayers = 4;

struct LabSpec {
  std::string name = "lab";
  int trials = 20;
  int examples = 12;
  uint64_t seed = 3;
  std::string metric = "token_agreement";
  std::string extra;  // further YAML lines of the study, flush left
};

class StudyLab {
 public:
  explicit StudyLab(const LabSpec& spec = {});

  std::string path(const std::string& name) const { return dir_.file(name); }
  std::string database() const { return path("trials.db"); }
  std::string model() const { return path("model"); }
  void write_spec(const LabSpec& spec);
  std::string endpoint() const { return endpoint_; }

  // Waits until it listens. Every coordinator of one lab binds the same port.
  Process coordinator(const std::vector<std::string>& options = {},
                      const std::map<std::string, std::string>& environment = {});
  // `fake`: KVSWEEP_FAKE; the log of what was run is added.
  Process worker(const std::string& id, const std::string& fake = "");
  // The same environment for workers that a coordinator starts.
  std::map<std::string, std::string> fake(const std::string& words) const;

  std::string output(const std::string& name) const;  // of a process: "coordinator", a worker's id

  // What is recorded. Fails the test when it cannot be read.
  store::Store open() const;
  store::StudyRow study(const std::string& name = "lab") const;
  std::vector<store::TrialRow> trials(const std::string& name = "lab") const;  // no baseline
  int64_t told() const;  // trials with an outcome; 0 while there is no database
  std::vector<std::vector<int>> genomes(const std::string& name = "lab") const;
  int64_t events(const std::string& kind) const;

  // Lines of the log of examples that were run, over all workers.
  std::vector<std::string> runs() const;

 private:
  TempDir dir_;
  std::string endpoint_;
};

// Path of a helper program in the build folder.
std::string program(const std::string& name);

// As the study should have measured it: mean of fake_agreement over the first `examples`.
double expected_agreement(const PrecisionMap& map, int64_t examples);

// gtest assertions shared by the scenarios.
void expect_finished(const StudyLab& lab, int64_t trials);
void expect_every_example_run_once(const StudyLab& lab);

}  // namespace kvsweep::test
