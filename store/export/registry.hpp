// What one exporter provides. For an entry of exporters.def with id X, export/X.cpp defines
// `const ExporterFunctions X_functions`. Internal to store/export.
#pragma once

#include <optional>
#include <string>

#include "store/export/exporter.hpp"

namespace kvsweep::store {

struct ImportSource {
  std::string path;  // starts every message
  std::string text;
  std::optional<std::string> sidecar;   // text of the file beside it
  std::optional<SchemeOptions> scheme;  // null for a format that says its own
};

struct ExporterFunctions {
  Result<ExportOutput> (*write)(const ExportInput& input) = nullptr;
  // Null when the exporter cannot import.
  bool (*recognises)(const std::string& text) = nullptr;  // by content
  Result<ImportedMap> (*read)(const ImportSource& source) = nullptr;
  bool takes_scheme = false;  // files do not say their scheme: ImportSource::scheme may
};

#define KVSWEEP_EXPORTER(id, name, extension, can_import, summary) \
  extern const ExporterFunctions id##_functions;
#include "store/export/exporters.def"
#undef KVSWEEP_EXPORTER

}  // namespace kvsweep::store
