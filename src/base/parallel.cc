#include "base/parallel.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <cfenv>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "base/signals.h"

namespace npuless {
namespace {

constexpr int kMaxThreads = 1024;

int default_threads() {
  if (const char* text = std::getenv("NPULESS_NUM_THREADS")) {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (*end == '\0' && value >= 1 && value <= kMaxThreads) return static_cast<int>(value);
  }
  return tbb::this_task_arena::max_concurrency();
}

// Threads of the pool leave signals to the program's own threads, except those that report a fault
// of the thread itself. A new thread has its creator's mask, and any client's may be that.
class BlockSignals : public tbb::task_scheduler_observer {
 public:
  explicit BlockSignals(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) {
    observe(true);
  }
  void on_scheduler_entry(bool is_worker) override {
    static thread_local bool done = false;
    if (!is_worker || done) return;
    done = true;
    block_signals();
  }
};

// oneTBB creates at most one worker per processor unless told otherwise, and prints a warning when
// an arena asks for more; so the limit is raised first and the arena sized to it. Arenas only grow,
// and older ones are kept: an operator may be running in them.
class Pool {
 public:
  Pool() { set_threads(default_threads()); }

  int threads() const { return threads_.load(std::memory_order_relaxed); }
  tbb::task_arena& arena() { return *arena_.load(std::memory_order_acquire); }

  void set_threads(int threads) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (threads > limit_) grow(threads);
    threads_.store(threads, std::memory_order_relaxed);
  }

 private:
  void grow(int threads) {
    control_.reset();  // of several controls the smallest would rule
    control_ = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                     static_cast<size_t>(threads));
    arenas_.push_back(std::make_unique<tbb::task_arena>(threads));
    observers_.push_back(std::make_unique<BlockSignals>(*arenas_.back()));
    arena_.store(arenas_.back().get(), std::memory_order_release);
    limit_ = threads;
  }

  std::mutex mutex_;
  std::atomic<int> threads_{1};
  std::atomic<tbb::task_arena*> arena_{nullptr};
  int limit_ = 0;
  std::unique_ptr<tbb::global_control> control_;
  std::vector<std::unique_ptr<tbb::task_arena>> arenas_;
  std::vector<std::unique_ptr<BlockSignals>> observers_;
};

// Never destroyed: stream workers may still run while static destructors do.
Pool& pool() {
  static Pool* instance = new Pool;
  return *instance;
}

}  // namespace

int num_threads() {
  return pool().threads();
}

Status set_num_threads(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    return fail(code::kInvalidParam, "the number of threads must be in [1, %d], got %d",
                kMaxThreads, threads);
  }
  pool().set_threads(threads);
  return {};
}

namespace detail {

void run_workers(int workers, void (*loop)(void* context, int worker), void* context) {
  if (workers == 1) return loop(context, 0);
  // Isolated: a thread that waits for this loop's last pieces must not pick up a long loop of
  // another stream meanwhile.
  pool().arena().execute([&] {
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          0, workers, [&](int worker) { loop(context, worker); }, tbb::simple_partitioner());
    });
  });
}

static_assert(sizeof(std::fenv_t) <= 64);

DefaultFpEnv::DefaultFpEnv() {
  std::fegetenv(reinterpret_cast<std::fenv_t*>(saved_));
  std::fesetenv(FE_DFL_ENV);
}

DefaultFpEnv::~DefaultFpEnv() {
  std::fesetenv(reinterpret_cast<const std::fenv_t*>(saved_));
}

}  // namespace detail
}  // namespace npuless
