#include "worker/task/data_path.hpp"

#include <filesystem>

#include "core/text.hpp"

namespace kvsweep::task {

Result<std::string> data_path(const TaskProtocol& protocol, const std::string& data_dir) {
  const std::string file = protocol.name.substr(protocol.name.find('/') + 1);
  for (const std::string& part : split(file, '/')) {
    if (!part.empty() && part != "." && part != "..") continue;
    return bad_input("task " + protocol.name + ": \"" + file +
                     "\" is not the path of a file below the folder of data sets; give one such as "
                     "wikitext2/wiki.test.raw");
  }
  const std::string path = data_dir + "/" + file;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return path;
  return not_found("task " + protocol.name + ": there is no file " + path +
                   "; name one below the folder of data sets (--data-dir or KVSWEEP_DATA_DIR)");
}

}  // namespace kvsweep::task
