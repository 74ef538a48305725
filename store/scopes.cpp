// What was measured under a map, found without knowing the examples: for comparisons.
#include <map>

#include "store/state.hpp"

namespace kvsweep::store {
namespace {

std::string hex_of(std::string_view blob) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : blob) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace

Result<std::vector<MeasuredScope>> Store::measured_scopes(const std::string& map_id) const {
  return state_->read([&]() -> Result<std::vector<MeasuredScope>> {
    std::vector<MeasuredScope> all;
    Query row = state_->connection().query(
        "SELECT s.id, m.hash, t.protocol_hash, s.numerics_class, s.base, t.name, t.version, "
        "t.split, t.shots, t.seed, t.max_new_tokens, t.length, t.mode, "
        "t.form, t.context, t.rows "
        "FROM scopes s JOIN maps p ON p.id = s.map JOIN tasks t ON t.id = s.task "
        "JOIN models m ON m.id = s.model WHERE p.map_id = ? "
        "ORDER BY t.name, t.split, t.protocol_hash, m.hash, s.id");
    row.with(map_id);
    while (row.step()) {
      MeasuredScope found;
      found.row = row.integer(0);
      found.scope = {row.text(1), map_id, row.text(2), row.text(3), BaseType::fp16};
      KVSWEEP_ASSIGN(found.scope.base, base_type_from(row.text(4)));
      found.protocol = {row.text(5),
                        row.text(6),
                        row.text(7),
                        static_cast<int>(row.integer(8)),
                        row.integer(9),
                        static_cast<int>(row.integer(10)),
                        static_cast<int>(row.integer(11)),
                        TaskForm::text,
                        static_cast<int>(row.integer(14)),
                        row.text(15)};
      KVSWEEP_ASSIGN(found.protocol.form, task_form_from(row.text(13)));
      KVSWEEP_ASSIGN(found.mode, run_mode_from(row.text(12)));
      all.push_back(std::move(found));
    }
    return all;
  });
}

Result<std::map<std::string, Measurement>> Store::measurements(const MeasuredScope& scope) const {
  using Found = std::map<std::string, Measurement>;
  return state_->read([&]() -> Result<Found> {
    Found found;
    Query row = state_->connection().query(
        "SELECT e.hash, x.number, x.text, x.answer, x.exact_match, x.strict_match, "
        "x.token_agreement, x.kl, x.nll, x.prompt_tokens, x.output_tokens, x.cache_bytes "
        "FROM measurements x JOIN examples e ON e.id = x.example WHERE x.scope = ?");
    row.with(scope.row);
    while (row.step()) {
      Measurement m;
      m.example_hash = hex_of(row.bytes(0));
      m.example = row.integer(1);
      m.text = row.text(2);
      m.answer = row.text(3);
      m.exact_match = row.maybe_real(4);
      m.strict_match = row.maybe_real(5);
      m.token_agreement = row.maybe_real(6);
      m.kl = row.maybe_real(7);
      m.nll = row.maybe_real(8);
      m.prompt_tokens = row.integer(9);
      m.output_tokens = row.integer(10);
      m.cache_bytes = row.integer(11);
      found.emplace(m.example_hash, std::move(m));
    }
    return found;
  });
}

}  // namespace kvsweep::store
