#include "store/export/exporter.hpp"

#include <filesystem>

#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/text.hpp"
#include "store/export/registry.hpp"

namespace kvsweep::store {

namespace {

struct Entry {
  ExporterInfo info;
  const ExporterFunctions* functions;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = {
#define KVSWEEP_EXPORTER(id, name, extension, can_import, summary) \
  {{name, extension, summary, can_import != 0}, &id##_functions},
#include "store/export/exporters.def"
#undef KVSWEEP_EXPORTER
  };
  return table;
}

Result<const Entry*> find_entry(const std::string& name) {
  std::vector<std::string> known;
  for (const Entry& entry : entries()) {
    if (entry.info.name == name) return &entry;
    known.emplace_back(entry.info.name);
  }
  const std::string near = nearest_word(name, known);
  return bad_input(
      "there is no exporter \"" + name + "\"; " +
      (near.empty() ? "known are " + join(known, ", ") : "did you mean " + near + "?"));
}

Result<const Entry*> find_importer(const std::string& path, const std::string& format,
                                   const std::string& text) {
  if (format.empty()) {
    for (const Entry& entry : entries()) {
      if (entry.functions->recognises != nullptr && entry.functions->recognises(text))
        return &entry;
    }
    return bad_input(path +
                     " is neither a kvmap (JSON with \"schema\": \"kvmap\") nor a KVTuner YAML "
                     "(layer: {nbits_key: N, nbits_value: N}); name the format with --format");
  }
  KVSWEEP_ASSIGN(const Entry* entry, find_entry(format));
  if (entry->functions->read == nullptr) {
    return bad_input("exporter " + format + " writes files but cannot read them");
  }
  return entry;
}

// A map file of the largest models is a few hundred KiB; more is some other file.
constexpr uintmax_t kMaxFileBytes = 64 << 20;

Result<std::string> read_small_file(const std::string& path) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMaxFileBytes) {
    return bad_input(path + " has " + human_bytes(static_cast<double>(bytes)) +
                     ", too large for a precision map; give the path of a map file");
  }
  return read_file(path);
}

}  // namespace

const std::vector<ExporterInfo>& exporters() {
  static const std::vector<ExporterInfo> table = [] {
    std::vector<ExporterInfo> infos;
    for (const Entry& entry : entries()) infos.push_back(entry.info);
    return infos;
  }();
  return table;
}

Result<ExportOutput> export_map(const std::string& exporter, const ExportInput& input) {
  KVSWEEP_ASSIGN(const Entry* entry, find_entry(exporter));
  KVSWEEP_TRY(check_map(input.map, input.geometry));
  return entry->functions->write(input);
}

std::string sidecar_path(const std::string& path) {
  return path + ".sidecar.json";
}

Result<std::string> document_hash(const std::string& text) {
  KVSWEEP_ASSIGN(const Json json, parse_json(text, "the document"));
  KVSWEEP_ASSIGN(const std::string canonical, canonical_json(json));
  return sha256_hex(canonical);
}

namespace {

// A pair that the scheme cannot store could not run on any model.
Status check_pairs(const std::string& path, const PrecisionMap& map) {
  for (int i = 0; i < map.num_layers(); ++i) {
    const LayerPairs& layer = map.layers[static_cast<size_t>(i)];
    int head = 0;
    for (const Pair& pair : layer.pairs()) {
      const std::string place = place_of(layer, i, head++);
      const std::string objection = map.scheme.objection(pair);
      if (objection.empty()) continue;
      return bad_input(path + ": " + place + ": " + objection +
                       "; choose a scheme that takes it (see `kvsweep list schemes`)");
    }
  }
  return {};
}

}  // namespace

Result<ImportedMap> import_map(const std::string& path, const std::string& format,
                               const std::optional<SchemeOptions>& scheme) {
  ImportSource source;
  source.path = path;
  source.scheme = scheme;
  KVSWEEP_ASSIGN(source.text, read_small_file(path));
  std::error_code error;
  if (std::filesystem::exists(sidecar_path(path), error)) {
    KVSWEEP_ASSIGN(source.sidecar, read_small_file(sidecar_path(path)));
  }
  KVSWEEP_ASSIGN(const Entry* entry, find_importer(path, format, source.text));
  if (scheme && !entry->functions->takes_scheme) {
    return bad_input(path + " says its own scheme; remove the options that give another " +
                     "(--scheme, --group, --residual, --share, --sinks, --prefill, --symmetric, "
                     "--hadamard, --key-bias, --ranges)");
  }
  KVSWEEP_ASSIGN(ImportedMap imported, entry->functions->read(source));
  KVSWEEP_TRY(check_pairs(path, imported.map));
  return imported;
}

}  // namespace kvsweep::store
