// `kvsweep evaluate`: one map on one task, against the baseline, without a search.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "cli/common_options.hpp"
#include "cli/map_source.hpp"
#include "cli/progress.hpp"
#include "cli/signals.hpp"
#include "cli/table.hpp"
#include "cli/trial_view.hpp"
#include "core/catalog/page_layout.hpp"
#include "core/file.hpp"
#include "core/perplexity.hpp"
#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

struct Cost {
  int64_t bytes = 0;
  double effective_bits = 0;
};

class Evaluate final : public Verb {
 public:
  void declare(Options& options) override {
    options.note(
        "Runs the examples of a task under one precision map and under the unquantized "
        "cache, and compares them. Measurements that the database has are not run again.");
    options.text("--model", "PATH", model_, "Hugging Face model folder, or a .gguf file");
    options.text("--map", "MAP", map_,
                 "a kvmap or KVTuner file, uniform:K4V2, or baseline; the "
                 "latter two also with exceptions for layers (uniform:K4V2,5=K8V4,6-7=KV8) and KV "
                 "heads (5.0=K8V4: layer 5, head 0; 5=K8V4|K4V2: a pair per head)");
    options.text("--task", "NAMES", tasks_,
                 "tasks, separated by commas; see `kvsweep list tasks`. Options of a task hold for "
                 "all of them");
    options.text("--metric", "NAMES", metrics_,
                 "exact_match, answer_agreement, token_agreement, kl, nll; several with commas "
                 "(default: exact_match; nll of tasks that score a given text)");
    declare_task(options);
    options.text("--samples", "FILE", samples_,
                 "also write what every example gave, as JSON lines: under the map and under the "
                 "unquantized cache");
    scheme_.declare(options);
    options.value("--baseline-kv", "TYPE",
                  "fp32, fp16 or bf16 (default: of the map's file, or fp16)",
                  [this](const std::string& text) -> Status {
                    KVSWEEP_ASSIGN(base_, base_type_from(text));
                    return {};
                  });
    options.integer(
        "--context", "TOKENS", context_, 1, int64_t{1} << 30,
        "where cache bytes are counted (default: 4096, or the model's context if shorter)");
    database_.declare(options);
    run_.declare_local(options);
    log_.declare(options);
    options.flag("--json", json_, "print one JSON document; progress as JSON lines");
    options.example("evaluate --model models/smollm2 --map uniform:K4V2 --task word_problems");
    options.example("evaluate --model models/smollm2 --map best.kvmap.json --task gsm8k");
    options.example("evaluate --model m --map baseline --task gsm8k --metric exact_match,kl");
    options.example(
        "evaluate --model m --map uniform:K4V4 --task perplexity/wikitext2/wiki.test.raw");
  }

  Result<int> run(Context& context) override {
    KVSWEEP_TRY(check_required());
    KVSWEEP_ASSIGN(const ModelGeometry geometry, read_geometry(model_));
    if (context_ == 0) context_ = std::min<int64_t>(4096, geometry.max_context);
    KVSWEEP_ASSIGN(const NamedMap named, load_map(map_, scheme_, geometry));
    KVSWEEP_ASSIGN(const coordinator::EvaluateRequest request, make_request(named));
    KVSWEEP_TRY(check_model_folder(model_));
    KVSWEEP_ASSIGN(const coordinator::CoordinatorOptions options,
                   run_.make({model_}, database_.path));
    KVSWEEP_TRY(log_.apply());
    KVSWEEP_ASSIGN(store::Store store, database_.open(store::OpenMode::read_write));
    KVSWEEP_TRY(store.put_map(named.map));
    catch_signals();
    ProgressPrinter printer(context.err, context.clock, json_, "measured");
    const Result<coordinator::EvaluateReport> report =
        coordinator::evaluate(request, store, options, context.clock, context.stop,
                              [&](const coordinator::StudyProgress& p) { printer.show(p); });
    printer.end();
    if (!report.ok()) return report.error();
    if (!named.model_hash.empty() && named.model_hash != report->model_hash) {
      printer.line(other_model_note(map_));
    }
    const CacheLayout layout = cache_layout(named.map, geometry, request.base);
    const Cost cost{layout.bytes(context_, 1), effective_bits(layout, geometry, context_)};
    KVSWEEP_TRY(print(*report, request, cost, context));
    if (!samples_.empty()) KVSWEEP_TRY(write_file_atomic(samples_, samples_text(*report)));
    if (report->interrupted) printer.line("kvsweep: interrupted; what was measured is recorded");
    return report->interrupted ? kInterrupted : kOk;
  }

 private:
  void declare_task(Options& options) {
    options.text("--split", "NAME", task_.split, "part of the data set (default: of the task)");
    optional_integer(options, "--shots", "N", task_.shots, "examples shown first");
    optional_integer(options, "--examples", "N", task_.examples, "the first so many; 0 = all");
    optional_integer(options, "--seed", "N", task_.seed, "of a generated task");
    optional_integer(options, "--length", "TOKENS", task_.length,
                     "tokens of a prompt that is made to a length");
    optional_text(options, "--form", "FORM", task_.form,
                  "text, chat (prompt and shots as one message) or multiturn (a message each)");
    optional_integer(options, "--prompt-tokens", "N", task_.context,
                     "longest prompt; 0 = what the model has room for");
    optional_text(options, "--rows", "HALF", task_.rows,
                  "search or report: half of the split, chosen by content; or all");
    optional_integer(options, "--max-new-tokens", "N", task_.max_new_tokens, "longest answer");
  }

  static void optional_text(Options& options, const std::string& name, const std::string& metavar,
                            std::optional<std::string>& place, const std::string& help) {
    options.value(name, metavar, help, [&place](const std::string& text) -> Status {
      place = text;
      return {};
    });
  }

  static void optional_integer(Options& options, const std::string& name,
                               const std::string& metavar, std::optional<int64_t>& place,
                               const std::string& help) {
    options.value(name, metavar, help, [name, &place](const std::string& text) -> Status {
      int64_t number = 0;
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, number);
      if (error != std::errc() || stop != end || number < 0) {
        return bad_input(name + " is \"" + text + "\"; it must be a whole number, 0 or more");
      }
      place = number;
      return {};
    });
  }

  Status check_required() const {
    if (model_.empty()) {
      return bad_input("--model is missing; give a Hugging Face model folder or a .gguf file");
    }
    if (map_.empty()) {
      return bad_input("--map is missing; give a file, uniform:K4V2 or baseline");
    }
    if (tasks_.empty()) return bad_input("--task is missing; see `kvsweep list tasks`");
    return {};
  }

  Result<coordinator::EvaluateRequest> make_request(const NamedMap& named) const {
    coordinator::EvaluateRequest request;
    request.model_dir = model_;
    request.map = named.map;
    request.base = base_.value_or(named.base.value_or(BaseType::fp16));
    const std::vector<std::string> names = split(tasks_, ',');
    const std::vector<std::string> metrics =
        metrics_.empty() ? std::vector<std::string>{""} : split(metrics_, ',');
    for (size_t i = 0; i < names.size() * metrics.size(); ++i) {
      TaskOptions options = task_;
      options.name = names[i / metrics.size()];
      const std::string& metric = metrics[i % metrics.size()];
      if (!metric.empty()) options.metric = metric;
      KVSWEEP_ASSIGN(TaskSpec task, make_task(options));
      request.tasks.push_back(std::move(task));
    }
    return request;
  }

  static std::string samples_text(const coordinator::EvaluateReport& report) {
    std::string lines;
    for (const coordinator::EvaluateRow& row : report.rows) {
      std::map<int64_t, const Measurement*> baseline;
      for (const Measurement& m : row.baseline) baseline[m.example] = &m;
      for (const Measurement& m : row.map) {
        const Json line = {{"task", to_json(row.task.protocol)},
                           {"metric", to_string(row.task.metric)},
                           {"map", to_json(m)},
                           {"baseline", to_json(*baseline.at(m.example))}};
        lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
      }
    }
    return lines;
  }

  Status print(const coordinator::EvaluateReport& report,
               const coordinator::EvaluateRequest& request, const Cost& cost,
               const Context& context) const {
    Table table({"task", "split", "metric", ">value", ">baseline", ">loss", ">95 % interval",
                 "method", ">n", ">reused"});
    Json rows = Json::array();
    std::string perplexities;
    for (const coordinator::EvaluateRow& row : report.rows) {
      if (row.map.empty()) continue;  // interrupted before it was measured
      KVSWEEP_ASSIGN(const coordinator::MetricValue value,
                     coordinator::metric_value(row.task.metric, row.map, row.baseline));
      const std::string metric(to_string(row.task.metric));
      table.row({row.task.protocol.name, row.task.protocol.split, metric, number_text(value.value),
                 number_text(value.baseline), number_text(value.loss),
                 interval_text(value.interval), std::string(value.method),
                 std::to_string(value.examples), std::to_string(row.reused)});
      rows.push_back({{"task", to_json(row.task.protocol)},
                      {"metric", metric},
                      {"value", value.value},
                      {"baseline", value.baseline},
                      {"loss", value.loss},
                      {"loss_95", interval_json(value.interval)},
                      {"method", value.method},
                      {"examples", value.examples},
                      {"reused", row.reused}});
      const auto of_map = perplexity(row.map);
      const auto of_baseline = perplexity(row.baseline);
      if (!of_map || !of_baseline) continue;
      rows.back()["perplexity"] = {
          {"per", of_map->per}, {"value", of_map->value}, {"baseline", of_baseline->value}};
      perplexities +=
          fmt::format("\n{}: perplexity {:.4f} per {}, baseline {:.4f}", row.task.protocol.name,
                      of_map->value, of_map->per, of_baseline->value);
    }
    if (!perplexities.empty()) perplexities += "\n";
    if (json_) {
      const Json document = {{"model", model_},
                             {"model_hash", report.model_hash},
                             {"numerics_class", report.numerics_class},
                             {"map_id", map_id(request.map)},
                             {"map", summary(request.map)},
                             {"scheme", to_json(options_of(request.map.scheme))},
                             {"baseline_kv", to_string(request.base)},
                             {"context", context_},
                             {"bytes", cost.bytes},
                             {"effective_bits", cost.effective_bits},
                             {"interrupted", report.interrupted},
                             {"results", std::move(rows)}};
      context.out.print(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
      return {};
    }
    context.out.print(fmt::format(
        "map       {}\nscheme    {}\nmap id    {}\ncache     {} at {} tokens, {:.2f} effective "
        "bits\n"
        "numerics  {}\n\n{}{}",
        summary(request.map), described(request.map.scheme), map_id(request.map),
        human_bytes(static_cast<double>(cost.bytes)), context_, cost.effective_bits,
        report.numerics_class, table.text(context.out), perplexities));
    return {};
  }

  std::string model_;
  std::string map_;
  std::string metrics_;
  std::string tasks_;
  TaskOptions task_;  // what holds for all of them
  std::string samples_;
  SchemeFlags scheme_;
  std::optional<BaseType> base_;
  int64_t context_ = 0;  // 0 = not given
  DatabaseOptions database_;
  RunOptions run_;
  LogOptions log_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_evaluate_verb() {
  return std::make_unique<Evaluate>();
}

}  // namespace kvsweep::cli
