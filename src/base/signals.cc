#include "base/signals.h"

#include <pthread.h>

#include <initializer_list>

namespace npuless {

sigset_t block_signals() {
  sigset_t blocked, saved;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
    sigdelset(&blocked, fault);
  }
  pthread_sigmask(SIG_BLOCK, &blocked, &saved);
  return saved;
}

}  // namespace npuless
