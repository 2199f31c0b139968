// <immintrin.h>, or SIMDe's implementation of the AVX-512 intrinsics in terms of AVX2 when the
// build emulates them (NPULESS_EMULATE_AVX512): the AVX-512 kernels then run, slowly, on any AVX2
// machine, which is how their results are tested where no AVX-512 processor is at hand.
#pragma once

#if defined(NPULESS_EMULATE_AVX512)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wpedantic"
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

#include "isa/simde_missing.h"
#pragma GCC diagnostic pop
#else
// GCC 12 takes the undefined vectors of its own header for uninitialised variables.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif
