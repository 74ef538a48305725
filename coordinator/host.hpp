// Host: what every run needs around a driver: the endpoint, the local workers, the dispatcher.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "coordinator/coordinator.hpp"
#include "coordinator/dispatcher.hpp"
#include "coordinator/driver.hpp"
#include "coordinator/local_workers.hpp"
#include "coordinator/zmq_endpoint.hpp"

namespace kvsweep::coordinator {

class Host {
 public:
  // Binds, tells `on_bound` the address, then starts the local workers.
  static Result<std::unique_ptr<Host>> start(
      store::Store& store, const Clock& clock, const CoordinatorOptions& options,
      const std::function<void(const std::string&)>& on_bound);

  const std::string& address() const { return endpoint_.address(); }

  // When the run ends with an error, what the driver stands for is recorded as interrupted.
  Result<RunEnd> run(Driver& driver, const std::atomic<int>& stop, const ProgressSink& progress);

  // Every worker is told to leave; local ones are waited for, and ended if they do not go.
  // `at_once`: without patience.
  void finish(bool at_once);

 private:
  Host(ZmqEndpoint endpoint, store::Store& store, const Clock& clock,
       const CoordinatorOptions& options);

  ZmqEndpoint endpoint_;
  store::Store& store_;
  Dispatcher dispatcher_;
  LocalWorkers local_;
};

WorkloadOptions workload_options(const CoordinatorOptions& options);

}  // namespace kvsweep::coordinator
