#include "worker/model/model.hpp"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <new>

#include "worker/model/decoder.hpp"
#include "worker/model/family.hpp"
#include "worker/model/parallel.hpp"

namespace kvsweep::model {

Result<std::unique_ptr<Model>> load_model(const std::string& model_dir,
                                          const LoadOptions& options) {
  KVSWEEP_ASSIGN(DecoderConfig config, configured_decoder(model_dir));
  set_threads(options.threads);
  try {
    return load_decoder(model_dir, std::move(config));
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::oom, "memory ran out while loading " + model_dir};
  } catch (const c10::Error& error) {
    return Error{ErrorCode::oom, fmt::format("loading {} failed in libtorch: {}", model_dir,
                                             error.what_without_backtrace())};
  }
}

}  // namespace kvsweep::model
