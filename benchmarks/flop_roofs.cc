#include "flop_roofs.h"

#include <atomic>
#include <chrono>
#include <vector>

#include "base/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace npuless::bench {
namespace {

using Probe = double (*)(int64_t rounds);  // runs `rounds` rounds, returns flops done

double portable_probe(int64_t rounds) {
  using Four = float __attribute__((vector_size(16)));
  constexpr int kSums = 12;
  Four sum[kSums] = {};
  Four a = {1.0f, 1.0f, 1.0f, 1.0f};
  Four b = {1e-9f, 1e-9f, 1e-9f, 1e-9f};
  for (int64_t r = 0; r < rounds; ++r) {
    asm volatile("" : "+x"(a), "+x"(b));
    for (auto& s : sum) s += a * b;
  }
  for (auto& s : sum) asm volatile("" : "+x"(s));
  return static_cast<double>(rounds) * kSums * 8;
}

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) double avx2_probe(int64_t rounds) {
  constexpr int kSums = 12;
  __m256 sum[kSums];
  for (auto& s : sum) s = _mm256_setzero_ps();
  __m256 a = _mm256_set1_ps(1.0f);
  __m256 b = _mm256_set1_ps(1e-9f);
  for (int64_t r = 0; r < rounds; ++r) {
    asm volatile("" : "+x"(a), "+x"(b));
    for (auto& s : sum) s = _mm256_fmadd_ps(a, b, s);
  }
  for (auto& s : sum) asm volatile("" : "+x"(s));
  return static_cast<double>(rounds) * kSums * 16;
}

__attribute__((target("avx512f"))) double avx512_probe(int64_t rounds) {
  constexpr int kSums = 24;
  __m512 sum[kSums];
  for (auto& s : sum) s = _mm512_setzero_ps();
  __m512 a = _mm512_set1_ps(1.0f);
  __m512 b = _mm512_set1_ps(1e-9f);
  for (int64_t r = 0; r < rounds; ++r) {
    asm volatile("" : "+v"(a), "+v"(b));
    for (auto& s : sum) s = _mm512_fmadd_ps(a, b, s);
  }
  for (auto& s : sum) asm volatile("" : "+v"(s));
  return static_cast<double>(rounds) * kSums * 32;
}

__attribute__((target("avx512f,avx512bf16"))) double avx512_bf16_probe(int64_t rounds) {
  constexpr int kSums = 24;
  __m512 sum[kSums];
  for (auto& s : sum) s = _mm512_setzero_ps();
  __m512i a_bits = _mm512_set1_epi16(0x3F80);
  __m512i b_bits = _mm512_set1_epi16(0x3080);
  for (int64_t r = 0; r < rounds; ++r) {
    asm volatile("" : "+v"(a_bits), "+v"(b_bits));
    const auto a = reinterpret_cast<__m512bh>(a_bits);
    const auto b = reinterpret_cast<__m512bh>(b_bits);
    for (auto& s : sum) s = _mm512_dpbf16_ps(s, a, b);
  }
  for (auto& s : sum) asm volatile("" : "+v"(s));
  return static_cast<double>(rounds) * kSums * 64;
}

#endif

Probe probe_for([[maybe_unused]] isa::Level level, [[maybe_unused]] DType dtype) {
#if defined(__x86_64__) && !defined(NPULESS_EMULATE_AVX512)
  if (level == isa::Level::kAvx512Bf16 && dtype == DType::kBfloat16) return &avx512_bf16_probe;
  if (level >= isa::Level::kAvx512) return &avx512_probe;
  if (level == isa::Level::kAvx2) return &avx2_probe;
#endif
  return &portable_probe;
}

}  // namespace

double flop_roof(isa::Level level, DType dtype, int threads, int passes) {
  const Probe probe = probe_for(level, dtype);
  constexpr int64_t kRounds = 8'000'000;
  double best = 0;
  for (int pass = 0; pass < passes; ++pass) {
    std::vector<double> flops(static_cast<size_t>(threads));
    const auto start = std::chrono::steady_clock::now();
    parallel_for(threads, threads,
                 [&](int64_t i, int) { flops[static_cast<size_t>(i)] = probe(kRounds); });
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    double total = 0;
    for (const double f : flops) total += f;
    if (total / time.count() > best) best = total / time.count();
  }
  return best;
}

}  // namespace npuless::bench
