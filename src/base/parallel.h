// The one place that knows oneTBB: intra-operator parallelism.
//
// parallel_for(threads, count, body) calls body(index, worker) once for each index in [0, count).
// worker < threads and no two concurrent calls share one, so per-worker scratch is indexed by it.
// Who computes an index may vary, what it computes may not. Bodies run with the default
// floating-point environment (no flush to zero, round to nearest) whatever the caller's is, and
// must not throw or call parallel_for.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include "base/status.h"

namespace npuless {

// Workers an operator planned now may use: set_num_threads, else NPULESS_NUM_THREADS, else the
// processors this process may run on. Plans capture it; it sizes scratch.
int num_threads();
// 1 ≤ threads ≤ 1024; affects plans made afterwards.
Status set_num_threads(int threads);

namespace detail {

// `loop(context, worker)` pulls indices until none is left.
void run_workers(int workers, void (*loop)(void* context, int worker), void* context);

class DefaultFpEnv {
 public:
  DefaultFpEnv();
  ~DefaultFpEnv();
  DefaultFpEnv(const DefaultFpEnv&) = delete;
  DefaultFpEnv& operator=(const DefaultFpEnv&) = delete;

 private:
  alignas(16) unsigned char saved_[64];
};

// ThreadSanitizer does not see TBB hand work to its threads and needs to be told.
#ifdef __SANITIZE_THREAD__
inline void hand_over(void* work) {
  __tsan_release(work);
}
inline void take_over(void* work) {
  __tsan_acquire(work);
}
#else
inline void hand_over(void*) {}
inline void take_over(void*) {}
#endif

template <class Body>
struct Loop {
  Body& body;
  int64_t count;
  std::atomic<int64_t> next{0};
  // Acquire/release pairs make every write of a body visible to the submitting thread without
  // relying on the scheduler's own ordering, which ThreadSanitizer cannot see.
  std::atomic<int64_t> done{0};

  static void run(void* context, int worker) {
    take_over(context);
    auto& loop = *static_cast<Loop*>(context);
    const DefaultFpEnv env;
    for (int64_t i; (i = loop.next.fetch_add(1, std::memory_order_acq_rel)) < loop.count;) {
      loop.body(i, worker);
    }
    loop.done.fetch_add(1, std::memory_order_acq_rel);
  }
};

}  // namespace detail

template <class Body>
void parallel_for(int threads, int64_t count, Body&& body) {
  if (count <= 0) return;
  detail::Loop<std::remove_reference_t<Body>> loop{body, count};
  const int workers = count < threads ? static_cast<int>(count) : threads;
  detail::hand_over(&loop);
  detail::run_workers(workers, &decltype(loop)::run, &loop);
  loop.done.load(std::memory_order_acquire);
}

}  // namespace npuless
