// A task whose end the test decides.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "acl/acl.h"
#include "runtime/launch.h"

namespace npuless::runtime {

// The stream stops at hold() until open(): what is queued behind it has surely not run yet.
// The task owns a share of the state, so a gate may go while the worker still passes it.
class Gate {
 public:
  ~Gate() { open(); }

  void hold(aclrtStream stream) {
    auto* share = new std::shared_ptr<State>(state_);
    ASSERT_TRUE(launch(stream, &pass, &share, sizeof(share)).ok());
  }
  // Waits until the worker is at the gate.
  void await_arrival() { state_->arrived.wait(false); }
  void open() { set(state_->open); }

 private:
  struct State {
    std::atomic<bool> arrived{false};
    std::atomic<bool> open{false};
  };

  static void set(std::atomic<bool>& flag) {
    flag.store(true);
    flag.notify_all();
  }
  static Status pass(void* payload) {
    const std::unique_ptr<std::shared_ptr<State>> share(
        *static_cast<std::shared_ptr<State>**>(payload));
    set((*share)->arrived);
    (*share)->open.wait(false);
    return {};
  }

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace npuless::runtime
