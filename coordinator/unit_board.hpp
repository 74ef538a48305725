// UnitBoard: the work of a run, which of it waits, and what becomes of what fails. Pure logic: it
// knows neither clock, sockets nor database.
//
// Work is added as *pieces*: some examples under one map, or a task to describe. What is lent is a
// *unit*: one piece, or several of equal company, which have the same examples and differ in their
// maps. Which pieces go together is decided when a worker asks (docs/decisions/0011).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/retry.hpp"
#include "core/result.hpp"
#include "core/wire/messages.hpp"

namespace kvsweep::coordinator {

using WorkerIds = std::set<std::string>;

struct Piece {
  std::string id;
  wire::UnitKind kind = wire::UnitKind::measure;
  int evaluation = -1;                // measure: Workload's evaluation
  std::string task;                   // describe: Workload's task
  std::vector<int64_t> examples;      // measure: indices in the split
  std::string company;                // pieces of equal company may be lent together; "" = alone
  int64_t most = 1;                   // pieces in a unit that has this one; halved when one fails
  int attempts = 0;                   // leases so far
  int losses = 0;                     // workers lost over a unit that had this and other pieces
  std::map<ErrorCode, int> failures;  // those charged to it
  WorkerIds avoid;                    // workers that have failed on it
};

// A unit's id names its pieces, so that a coordinator that was restarted knows what a worker is
// still running: "m-1" is the piece itself, "m-1+m-2" has two.
std::string unit_id_of(const std::vector<std::string>& pieces);
std::vector<std::string> pieces_of(const std::string& unit_id);

struct LentUnit {
  std::string id;
  int attempt = 1;                  // grows with every lease of this id
  std::vector<std::string> pieces;  // those of its id that are still to be done
};

// Not thread-safe.
class UnitBoard {
 public:
  explicit UnitBoard(const RetryLimits& limits) : limits_(limits) {}

  // False when a piece of this id is already here.
  bool add(Piece piece);

  // The first waiting piece that this worker has not failed on (when every live worker has failed
  // on one, it goes to any), and whatever waits of its company, up to the smallest `most` of them.
  // They count as taken (attempts + 1) until `requeue`, `failed` or `remove`. nullptr when there
  // is nothing for this worker; else valid until the next call.
  const LentUnit* take(const std::string& worker_id, const WorkerIds& live);

  // Takes the pieces of exactly this unit that wait (the worker runs it already, under a lease that
  // expired or that another coordinator process granted). False when none does, or when one has
  // failed under this worker or in a unit of this size.
  bool adopt(const std::string& unit_id, int attempt, const std::string& worker_id);

  // Back to the head of the queue without charge: released, or never reached its worker.
  void requeue(const std::string& unit_id);

  // A failure of a unit that is lent. Of several pieces nobody knows whose failure it was: none is
  // charged, and they wait again, to be lent at most half as many at a time; when it was the first
  // time that a worker was lost over them, as they were. A single piece is charged. Returns pieces
  // for which that was the last attempt; they are gone. Unknown units are gone already: nothing.
  std::vector<Piece> failed(const std::string& unit_id, ErrorCode failure_class,
                            const std::string& worker_id, const WorkerIds& live);

  // A failure that is this piece's own, whatever was lent with it: charges it. As `failed`.
  std::vector<Piece> failed_alone(const std::string& piece_id, ErrorCode failure_class,
                                  const std::string& worker_id, const WorkerIds& live);

  void remove(const std::string& piece_id);
  // Removes every piece, waiting or taken, for which `condition` holds.
  void remove_if(const std::function<bool(const Piece&)>& condition);
  // Lets `change` edit examples and company of every waiting piece; false from it removes the
  // piece.
  void revise_waiting(const std::function<bool(Piece&)>& change);

  const Piece* find(const std::string& piece_id) const;
  const LentUnit* lent(const std::string& unit_id) const;              // nullptr when it is not
  const std::map<std::string, Piece>& all() const { return pieces_; }  // waiting or taken
  size_t waiting() const { return queue_.size(); }
  size_t size() const { return pieces_.size(); }

 private:
  struct Entry {  // where a piece is: at a place in the queue, or in a unit
    std::optional<int64_t> place;
    std::string unit;
  };

  void enqueue(const std::string& piece_id, bool first);
  void dequeue(const std::string& piece_id);
  bool may_take(const Piece& piece, const std::string& worker_id, const WorkerIds& live) const;
  std::vector<std::string> gather(const Piece& first, const std::string& worker_id,
                                  const WorkerIds& live) const;
  const LentUnit* lend(const std::string& unit_id, const std::vector<std::string>& pieces);
  void leave_unit(const std::string& piece_id);
  bool charge(Piece& piece, ErrorCode failure_class, const std::string& worker_id,
              const WorkerIds& live);
  void split(const LentUnit& unit, ErrorCode failure_class);

  RetryLimits limits_;
  std::map<std::string, Piece> pieces_;
  std::map<std::string, Entry> where_;                               // by piece id
  std::map<int64_t, std::string> queue_;                             // place -> piece id
  std::map<std::string, std::map<int64_t, std::string>> companies_;  // those that wait, by place
  std::map<std::string, LentUnit> lent_;
  int64_t first_place_ = 0;  // the next one before all others
  int64_t last_place_ = 1;   // the next one after all others
};

}  // namespace kvsweep::coordinator
