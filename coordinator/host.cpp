#include "coordinator/host.hpp"

#include "coordinator/bind_address.hpp"
#include "core/log.hpp"

namespace kvsweep::coordinator {

namespace {

constexpr int64_t kByeMs = 2000;      // for workers to say Bye
constexpr int64_t kPatienceMs = 500;  // for the processes of local ones to end, before SIGTERM

}  // namespace

WorkloadOptions workload_options(const CoordinatorOptions& options) {
  return {.retry = {.max_attempts = options.max_attempts},
          .examples_per_unit = options.examples_per_unit,
          .maps_per_unit = options.maps_per_unit};
}

Host::Host(ZmqEndpoint endpoint, store::Store& store, const Clock& clock,
           const CoordinatorOptions& options)
    : endpoint_(std::move(endpoint)),
      store_(store),
      dispatcher_(endpoint_, store, clock, options),
      local_(options.local, clock) {}

Result<std::unique_ptr<Host>> Host::start(store::Store& store, const Clock& clock,
                                          const CoordinatorOptions& options,
                                          const std::function<void(const std::string&)>& on_bound) {
  KVSWEEP_ASSIGN(ZmqEndpoint endpoint, ZmqEndpoint::bind(options.bind, options.insecure));
  std::unique_ptr<Host> host(new Host(std::move(endpoint), store, clock, options));
  if (on_bound) on_bound(host->address());
  KVSWEEP_TRY(host->local_.start(local_address(host->address())));
  return host;
}

Result<RunEnd> Host::run(Driver& driver, const std::atomic<int>& stop,
                         const ProgressSink& progress) {
  const auto tick = [this](const TurnNews& news) -> Status {
    for (const std::string& id : news.stuck) local_.kill(id);
    return local_.poll(news.draining, news.workers);
  };
  Result<RunEnd> end = dispatcher_.run(driver, {stop, progress, tick});
  if (end.ok()) return end;
  // What was committed is complete in itself; this only writes down that nobody works on it now.
  const Status noted = store_.transaction([&] { return driver.interrupted(); });
  if (!noted.ok()) log::error("coordinator", noted.error().message);
  return end;
}

void Host::finish(bool at_once) {
  dispatcher_.dismiss(at_once ? 0 : kByeMs);
  local_.stop(at_once ? 0 : kPatienceMs);
}

}  // namespace kvsweep::coordinator
