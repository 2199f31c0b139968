// Counts the allocations of all threads of the process, whoever makes them: the C library's
// functions (which operator new ends in) and mmap (which pool allocators such as TBB's end in).
#ifndef NPULESS_TESTS_CAPI_COUNT_ALLOCATIONS_H_
#define NPULESS_TESTS_CAPI_COUNT_ALLOCATIONS_H_

namespace client {

// From begin to end; returns how many there were.
void begin_counting_allocations();
long end_counting_allocations();

}  // namespace client

#endif  // NPULESS_TESTS_CAPI_COUNT_ALLOCATIONS_H_
