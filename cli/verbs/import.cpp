// `kvsweep import FILE`: reads a map, records it, says what is in it.
#include <fmt/format.h>

#include "cli/common_options.hpp"
#include "cli/map_lines.hpp"
#include "cli/map_source.hpp"
#include "cli/table.hpp"
#include "core/catalog/page_layout.hpp"
#include "core/json.hpp"
#include "core/text.hpp"
#include "store/export/exporter.hpp"

namespace kvsweep::cli {
namespace {

class Import final : public Verb {
 public:
  void declare(Options& options) override {
    options.note(
        "Reads a kvmap or KVTuner file, records the map in the database and prints its id "
        "and its layers. A KVTuner file says only bits: the scheme comes from the sidecar "
        "beside it, or, without one, from the options below.");
    options.positional("FILE", file_, "kvmap JSON or KVTuner YAML");
    options.text("--format", "NAME", format_, "kvmap or kvtuner (default: by content)");
    options.text("--model", "PATH", model_, "also check that the map fits this model");
    scheme_.declare(options);
    database_.declare(options);
    options.flag("--json", json_, "print one JSON document");
    options.example("import best.kvmap.json --model models/smollm2");
    options.example("import layers.yaml --scheme kivi --group 32");
  }

  Result<int> run(Context& context) override {
    std::optional<SchemeOptions> scheme;
    if (scheme_.any()) {
      KVSWEEP_ASSIGN(scheme, scheme_.options());
    }
    KVSWEEP_ASSIGN(store::ImportedMap imported, store::import_map(file_, format_, scheme));
    if (!model_.empty()) {
      KVSWEEP_ASSIGN(const ModelGeometry geometry, read_geometry(model_));
      KVSWEEP_TRY(check_imported(file_, imported, geometry));
      imported.geometry = geometry;
      if (!imported.model_hash.empty()) {
        KVSWEEP_ASSIGN(const std::string hash, model_hash(model_));
        if (imported.model_hash != hash) context.err.print(other_model_note(file_) + "\n");
      }
    }
    KVSWEEP_ASSIGN(store::Store store, database_.open(store::OpenMode::read_write));
    KVSWEEP_TRY(store.put_map(imported.map));
    context.out.print(json_ ? json_text(imported) : plain_text(imported, context));
    return kOk;
  }

 private:
  std::string plain_text(const store::ImportedMap& imported, const Context& context) const {
    const PrecisionMap& map = imported.map;
    std::string text = fmt::format("map id  {}\nmap     {}\nscheme  {}\n", map_id(map),
                                   summary(map), described(map.scheme));
    if (!imported.model_hash.empty()) text += "model   " + imported.model_hash + "\n";
    Table table({">layer", "pair", "keys", "values", ">bits K", ">bits V"});
    const std::vector<MapLine> lines = map_lines(map);
    for (const MapLine& line : lines) {
      table.row({line.label(), to_string(line.pair), to_string(line.keys), to_string(line.values),
                 bits_text(imported, line.layer, line.keys),
                 bits_text(imported, line.layer, line.values)});
    }
    return text + "\n" + table.text(context.out);
  }

  // Without a geometry only formats whose groups do not depend on the head can be counted.
  static std::string bits_text(const store::ImportedMap& imported, int layer,
                               const Format& format) {
    const BaseType base = imported.base.value_or(BaseType::fp16);
    if (imported.geometry) {
      const int head_dim = imported.geometry->layers.at(static_cast<size_t>(layer)).head_dim;
      return fmt::format("{:.2f}", format_bits(format, head_dim, base));
    }
    if (!format.quantized()) return fmt::format("{:.2f}", format_bits(format, 1, base));
    return std::to_string(info(format.codec).bits) + " +";
  }

  std::string json_text(const store::ImportedMap& imported) const {
    Json layers = Json::array();
    const std::vector<MapLine> lines = map_lines(imported.map);
    for (const MapLine& line : lines) {
      Json layer = {{"layer", line.layer},
                    {"pair", to_string(line.pair)},
                    {"keys", to_string(line.keys)},
                    {"values", to_string(line.values)}};
      if (line.head) layer["head"] = *line.head;
      layers.push_back(std::move(layer));
    }
    const Json document = {{"map_id", map_id(imported.map)},
                           {"map", summary(imported.map)},
                           {"scheme", imported.map.scheme.name},
                           {"model_hash", imported.model_hash},
                           {"layers", std::move(layers)}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  std::string file_;
  std::string format_;
  std::string model_;
  SchemeFlags scheme_;
  DatabaseOptions database_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_import_verb() {
  return std::make_unique<Import>();
}

}  // namespace kvsweep::cli
