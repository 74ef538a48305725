#include "cli/verb.hpp"

namespace kvsweep::cli {

#define KVSWEEP_VERB(id, name, summary) std::unique_ptr<Verb> make_##id##_verb();
#include "cli/verbs.def"
#undef KVSWEEP_VERB

const std::vector<VerbInfo>& verbs() {
  static const std::vector<VerbInfo> kTable = {
#define KVSWEEP_VERB(id, name, summary) {name, summary, &make_##id##_verb},
#include "cli/verbs.def"
#undef KVSWEEP_VERB
  };
  return kTable;
}

}  // namespace kvsweep::cli
