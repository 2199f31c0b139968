/* What npuless offers beyond CANN's API: version, choice of kernels, number of threads. */
#ifndef NPULESS_NPULESS_NPULESS_H_
#define NPULESS_NPULESS_NPULESS_H_

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "major.minor.patch" of the library that is running. */
ACL_FUNC_VISIBILITY const char* npulessGetVersion(void);

/* Kernels exist for the levels "portable", "avx2", "avx512" and "avx512_bf16". The environment
 * variable NPULESS_ISA chooses one before first use; without it the best one that the machine has
 * is used. The choice is read in phase 1 of an operator. */

/* The level in use. NULL when NPULESS_ISA asks for a level that is unknown or that the machine
 * lacks; aclGetRecentErrMsg then says which ones there are. */
ACL_FUNC_VISIBILITY const char* npulessGetIsa(void);
/* Uses `level` from now on. NULL: 100000. Unknown or lacking: 361001. */
ACL_FUNC_VISIBILITY aclError npulessSetIsa(const char* level);

/* Threads that one operator uses, 1 to 1024: by default NPULESS_NUM_THREADS, or the number of
 * processors this process may use. Read in phase 1; results do not depend on it.
 * Answers 0 when out of memory. */
ACL_FUNC_VISIBILITY int npulessGetNumThreads(void);
/* Out of range: 100000. */
ACL_FUNC_VISIBILITY aclError npulessSetNumThreads(int threads);

#ifdef __cplusplus
}
#endif

#endif /* NPULESS_NPULESS_NPULESS_H_ */
