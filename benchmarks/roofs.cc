#include "roofs.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "base/parallel.h"
#include "isa/simd_portable.h"

namespace npuless::bench {
namespace {

using namespace portable;

// Eight times the 32 MiB that a core complex shares.
constexpr int64_t kBufferBytes = int64_t{256} << 20;
constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr int64_t kPieces = kBufferBytes / kPieceBytes;
// One cache line per step of a loop body.
constexpr int64_t kLineBytes = 64;
constexpr int64_t kLineFloats = kLineBytes / static_cast<int64_t>(sizeof(float));
constexpr int kLineVectors = kLineFloats / kLanes;

// Written once, so that every page is there, and kept for the next measurement.
class Buffer {
 public:
  Buffer() {
    constexpr size_t kHugePage = size_t{2} << 20;
    data_ = static_cast<float*>(std::aligned_alloc(kHugePage, kBufferBytes));
    if (data_ == nullptr) std::abort();
    madvise(data_, kBufferBytes, MADV_HUGEPAGE);
    std::fill_n(data_, kBufferBytes / static_cast<int64_t>(sizeof(float)), 1.0f);
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  float* data() const { return data_; }

 private:
  float* data_;
};

const Buffer& source() {
  static const Buffer buffer;
  return buffer;
}

const Buffer& target() {
  static const Buffer buffer;
  return buffer;
}

void move_piece(const float* from, float* to, Mix mix, int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    F32 line[kLineVectors] = {};
    for (int r = 0; r < mix.reads; ++r, from += kLineFloats) {
      for (int v = 0; v < kLineVectors; ++v) line[v] = add(line[v], load(from + v * kLanes));
    }
    for (F32& part : line) asm volatile("" : "+x"(part));
    for (int w = 0; w < mix.writes; ++w, to += kLineFloats) {
      for (int v = 0; v < kLineVectors; ++v) stream(to + v * kLanes, line[v]);
    }
  }
  stream_fence();
}

}  // namespace

double memory_roof(Mix mix, int threads, int passes) {
  // Steps that exhaust the buffer of which more is needed, in pieces of about 1 MiB of it.
  const int64_t widest = std::max(mix.reads, mix.writes);
  const int64_t steps = kPieceBytes / kLineBytes / widest;
  const float* from = source().data();
  float* to = target().data();
  double best = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    parallel_for(threads, kPieces, [&](int64_t i, int) {
      const int64_t line = i * steps * kLineFloats;
      move_piece(from + line * mix.reads, to + line * mix.writes, mix, steps);
    });
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    const int64_t bytes = kPieces * steps * kLineBytes * (mix.reads + mix.writes);
    best = std::max(best, static_cast<double>(bytes) / elapsed.count());
  }
  return best;
}

}  // namespace npuless::bench
