// `kvsweep list KIND`: the tables of what this version knows.
#include <fmt/format.h>

#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "core/format.hpp"
#include "core/geometry.hpp"
#include "core/json.hpp"
#include "core/scheme.hpp"
#include "core/task_protocol.hpp"
#include "core/text.hpp"
#include "search/algorithms/algorithm.hpp"
#include "store/export/exporter.hpp"

namespace kvsweep::cli {
namespace {

// One table, as text and as JSON: the first column is the name.
struct Listing {
  std::vector<std::string> headers;
  std::vector<std::vector<Json>> rows;
};

Listing codec_listing() {
  Listing list{{"name", "label", "bits", "axes", "group", "symmetric", "summary"}, {}};
  for (const CodecInfo& codec : codecs()) {
    const std::string group = codec.group == kAnyGroup ? "of the scheme"
                              : codec.group == 0       ? "head"
                                                       : std::to_string(codec.group);
    list.rows.push_back({codec.name, codec.label,
                         codec.bits > 0 ? Json(codec.bits) : Json("of the baseline type"),
                         codec.takes(Axis::channel) ? "token, channel" : "token", group,
                         codec.integer(), codec.summary});
  }
  return list;
}

std::string window_text(const SchemeInfo& scheme) {
  switch (scheme.window) {
    case WindowRule::tokens:
      return std::to_string(scheme.residual) + " tokens";
    case WindowRule::recode:
      return std::to_string(scheme.residual) + " tokens, all coded again";
    case WindowRule::window_share:
      return "share of the window";
    case WindowRule::total_share:
      break;
  }
  return "share of all";
}

// The codecs that both sides, or one of them, may take.
std::string codecs_text(const SchemeInfo& info) {
  const Scheme scheme = make_scheme({.name = std::string(info.name)}).value();
  std::vector<std::string> names;
  for (const CodecInfo& codec : codecs()) {
    const bool keys = scheme.objection({codec.codec, Codec::base}).empty();
    const bool values = scheme.objection({Codec::base, codec.codec}).empty();
    if (!keys && !values) continue;
    const std::string side = keys && values ? "" : keys ? " (keys)" : " (values)";
    names.push_back(std::string(codec.label) + side);
  }
  return join(names, " ");
}

Listing scheme_listing() {
  Listing list{{"name", "keys", "values", "group", "exact window", "prefill", "codecs", "reference",
                "summary"},
               {}};
  for (const SchemeInfo& scheme : schemes()) {
    list.rows.push_back({scheme.name, "per " + std::string(to_string(scheme.k_axis)),
                         "per " + std::string(to_string(scheme.v_axis)),
                         scheme.group == 0 ? Json("head") : Json(scheme.group), window_text(scheme),
                         to_string(scheme.prefill), codecs_text(scheme), scheme.reference(),
                         scheme.summary});
  }
  return list;
}

Listing model_listing() {
  Listing list{{"family", "architecture", "models", "RoPE", "summary"}, {}};
  for (const FamilyInfo& family : families()) {
    list.rows.push_back(
        {family.name, family.architecture, family.models, family.ropes, family.summary});
  }
  return list;
}

Listing task_listing() {
  Listing list{{"name", "version", "kind", "shots", "longest answer", "length", "splits", "forms",
                "needs data", "summary"},
               {}};
  for (const TaskInfo& task : tasks()) {
    list.rows.push_back({task.name, task.version, to_string(task.kind), task.default_shots,
                         task.max_new_tokens, task.length, task.splits, task.forms,
                         !task.data.empty(), task.summary});
  }
  return list;
}

Listing algorithm_listing() {
  Listing list{{"name", "summary"}, {}};
  for (const search::AlgorithmInfo& algorithm : search::algorithms()) {
    list.rows.push_back({algorithm.name, algorithm.summary});
  }
  return list;
}

Listing exporter_listing() {
  Listing list{{"name", "extension", "can import", "summary"}, {}};
  for (const store::ExporterInfo& exporter : store::exporters()) {
    list.rows.push_back({exporter.name, exporter.extension, exporter.can_import, exporter.summary});
  }
  return list;
}

struct Kind {
  std::string name;
  Listing (*make)();
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"codecs", codec_listing},         {"schemes", scheme_listing},
      {"models", model_listing},         {"tasks", task_listing},
      {"algorithms", algorithm_listing}, {"exporters", exporter_listing}};
  return kKinds;
}

std::string cell_text(const Json& cell) {
  if (cell.is_boolean()) return cell.get<bool>() ? "yes" : "no";
  return cell.is_string() ? cell.get<std::string>() : cell.dump();
}

class List final : public Verb {
 public:
  void declare(Options& options) override {
    options.positional("KIND", kind_, "codecs, schemes, models, tasks, algorithms or exporters");
    options.flag("--json", json_, "print one JSON document");
    options.example("list schemes");
  }

  Result<int> run(Context& context) override {
    std::vector<std::string> names;
    for (const Kind& kind : kinds()) {
      if (kind.name == kind_) return print(kind.make(), context);
      names.push_back(kind.name);
    }
    const std::string near = nearest_word(kind_, names);
    return bad_input("there is no list of \"" + kind_ + "\"; allowed are " + join(names, ", ") +
                     (near.empty() ? "" : " (did you mean " + near + "?)"));
  }

 private:
  int print(const Listing& list, const Context& context) const {
    if (json_) {
      Json document = Json::array();
      for (const std::vector<Json>& row : list.rows) {
        Json object = Json::object();
        for (size_t c = 0; c < row.size(); ++c) object[list.headers[c]] = row[c];
        document.push_back(std::move(object));
      }
      context.out.print(document.dump(2) + "\n");
      return kOk;
    }
    Table table(list.headers);
    for (const std::vector<Json>& row : list.rows) {
      std::vector<std::string> cells;
      for (const Json& cell : row) cells.push_back(cell_text(cell));
      table.row(std::move(cells));
    }
    context.out.print(table.text(context.out));
    return kOk;
  }

  std::string kind_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_list_verb() {
  return std::make_unique<List>();
}

}  // namespace kvsweep::cli
