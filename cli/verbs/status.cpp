// `kvsweep status`: what a database holds and what happened last.
#include <fmt/format.h>

#include "cli/common_options.hpp"
#include "cli/front_report.hpp"
#include "cli/table.hpp"
#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

// Reports of a study are long; --json prints them whole.
std::string shortened(const std::string& detail) {
  constexpr size_t kWidth = 100;
  return detail.size() <= kWidth ? detail : detail.substr(0, kWidth) + " ...";
}

class StatusVerb final : public Verb {
 public:
  void declare(Options& options) override {
    database_.declare(options);
    options.integer("--events", "N", events_, 0, 100'000, "latest events to print (default 8)");
    options.flag("--json", json_, "print one JSON document");
    options.example("status --db nightly.db");
  }

  Result<int> run(Context& context) override {
    KVSWEEP_ASSIGN(const store::Store store, database_.open(store::OpenMode::read_only));
    KVSWEEP_ASSIGN(const std::vector<store::StudyRow> studies, store.studies());
    std::vector<FrontReport> fronts;
    for (const store::StudyRow& study : studies) {
      KVSWEEP_ASSIGN(FrontReport front, load_front(store, study));
      fronts.push_back(std::move(front));
    }
    KVSWEEP_ASSIGN(const std::vector<store::WorkerRow> workers, store.workers());
    KVSWEEP_ASSIGN(const std::vector<store::EventRow> events, latest_events(store, studies));
    KVSWEEP_ASSIGN(const store::DatabaseInfo info, store.info());
    context.out.print(json_ ? json_text(info, fronts, workers, events)
                            : plain_text(info, fronts, workers, events, context));
    return kOk;
  }

 private:
  Result<std::vector<store::EventRow>> latest_events(
      const store::Store& store, const std::vector<store::StudyRow>& studies) const {
    std::vector<store::EventRow> all;
    for (const store::StudyRow& study : studies) {
      KVSWEEP_ASSIGN(const std::vector<store::EventRow> some, store.events(study.id, events_));
      all.insert(all.end(), some.begin(), some.end());
    }
    std::sort(all.begin(), all.end(),
              [](const store::EventRow& a, const store::EventRow& b) { return a.id > b.id; });
    if (all.size() > static_cast<size_t>(events_)) all.resize(static_cast<size_t>(events_));
    return all;
  }

  std::string plain_text(const store::DatabaseInfo& info, const std::vector<FrontReport>& fronts,
                         const std::vector<store::WorkerRow>& workers,
                         const std::vector<store::EventRow>& events, const Context& context) const {
    const auto count = [&](const char* table) {
      const auto it = info.rows.find(table);
      return it == info.rows.end() ? int64_t{0} : it->second;
    };
    std::string text =
        fmt::format("{}: {}, schema {}; studies {}, maps {}, measurements {}\n", info.path,
                    human_bytes(static_cast<double>(info.file_bytes)), info.schema_version,
                    fronts.size(), count("maps"), count("measurements"));
    if (!fronts.empty()) text += "\n" + study_table(fronts, info).text(context.out);
    if (!workers.empty()) text += "\n" + worker_table(workers).text(context.out);
    if (!events.empty()) text += "\n" + event_table(events, fronts).text(context.out);
    return text;
  }

  // Whoever ran it ended without a word, as after kill -9.
  static bool abandoned(const store::StudyRow& study, const store::DatabaseInfo& info) {
    return study.status == store::StudyStatus::running && !info.writer_may_live;
  }

  static Table study_table(const std::vector<FrontReport>& fronts,
                           const store::DatabaseInfo& info) {
    Table table({">id", "study", "status", ">trials", ">front", ">hypervolume", "metric",
                 "started (UTC)", "~remark"});
    for (const FrontReport& front : fronts) {
      const store::StudyRow& study = front.study;
      table.row({std::to_string(study.id), full_name(study),
                 abandoned(study, info) ? "abandoned" : std::string(to_string(study.status)),
                 fmt::format("{}/{}", front.complete.size(), study.spec.search.trials),
                 std::to_string(front.members.size()),
                 fmt::format("{:.1f} %", 100 * front.hypervolume_share), metric_name(study),
                 utc_text(study.created_utc_ms),
                 abandoned(study, info) ? "nobody runs it; the same command goes on from there"
                                        : study.status_reason});
    }
    return table;
  }

  static Table worker_table(const std::vector<store::WorkerRow>& workers) {
    Table table({"worker", "host", "device", ">units", ">failed", "last seen (UTC)", "~numerics"});
    for (const store::WorkerRow& worker : workers) {
      table.row({worker.worker_id, worker.host, worker.device, std::to_string(worker.units_done),
                 std::to_string(worker.units_failed), utc_text(worker.last_seen_utc_ms),
                 worker.numerics_class});
    }
    return table;
  }

  static Table event_table(const std::vector<store::EventRow>& events,
                           const std::vector<FrontReport>& fronts) {
    Table table({"time (UTC)", "study", "event", "~detail"});
    for (const store::EventRow& event : events) {
      std::string study;
      for (const FrontReport& front : fronts) {
        if (front.study.id == event.study_id) study = full_name(front.study);
      }
      table.row({utc_text(event.utc_ms), study, event.kind, shortened(event.detail)});
    }
    return table;
  }

  static std::string json_text(const store::DatabaseInfo& info,
                               const std::vector<FrontReport>& fronts,
                               const std::vector<store::WorkerRow>& workers,
                               const std::vector<store::EventRow>& events) {
    Json document = {{"database",
                      {{"path", info.path},
                       {"schema_version", info.schema_version},
                       {"bytes", info.file_bytes},
                       {"rows", info.rows}}},
                     {"studies", Json::array()},
                     {"workers", Json::array()},
                     {"events", Json::array()}};
    for (const FrontReport& front : fronts) {
      Json study = study_json(front.study);
      study["abandoned"] = abandoned(front.study, info);
      study["trials_complete"] = front.complete.size();
      study["front_size"] = front.members.size();
      study["hypervolume_share"] = front.hypervolume_share;
      document["studies"].push_back(std::move(study));
    }
    for (const store::WorkerRow& worker : workers) {
      document["workers"].push_back({{"worker_id", worker.worker_id},
                                     {"host", worker.host},
                                     {"device", worker.device},
                                     {"device_name", worker.device_name},
                                     {"numerics_class", worker.numerics_class},
                                     {"version", worker.version},
                                     {"first_seen_utc", format_utc(worker.first_seen_utc_ms)},
                                     {"last_seen_utc", format_utc(worker.last_seen_utc_ms)},
                                     {"units_done", worker.units_done},
                                     {"units_failed", worker.units_failed}});
    }
    for (const store::EventRow& event : events) {
      const Result<Json> detail = parse_json(event.detail, "event");
      document["events"].push_back({{"id", event.id},
                                    {"study_id", event.study_id},
                                    {"utc", format_utc(event.utc_ms)},
                                    {"kind", event.kind},
                                    {"detail", detail.ok() ? *detail : Json(event.detail)}});
    }
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  DatabaseOptions database_;
  int64_t events_ = 8;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_status_verb() {
  return std::make_unique<StatusVerb>();
}

}  // namespace kvsweep::cli
