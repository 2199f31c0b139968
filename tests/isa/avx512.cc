#include "isa/simd_avx512.h"
#include "vector_probe.h"

namespace npuless::avx512 {
namespace {

#include "vector_probe.inl"

}  // namespace

constinit const VectorProbe vector_probe = kProbe;

}  // namespace npuless::avx512
