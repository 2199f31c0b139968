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
constexpr int kLineVectors = 4;

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

  float* piece(int64_t i) const { return data_ + i * kPieceFloats; }

 private:
  static constexpr int64_t kPieceFloats = kPieceBytes / static_cast<int64_t>(sizeof(float));
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

void read_piece(const float* from) {
  F32 sums[2 * kLineVectors] = {};
  for (int64_t i = 0; i < kPieceBytes / 4; i += 2 * kLineVectors * kLanes) {
    for (int v = 0; v < 2 * kLineVectors; ++v) sums[v] = add(sums[v], load(from + i + v * kLanes));
  }
  for (F32& sum : sums) asm volatile("" : : "m"(sum));
}

void copy_piece(const float* from, float* to) {
  for (int64_t i = 0; i < kPieceBytes / 4; i += kLineVectors * kLanes) {
    for (int v = 0; v < kLineVectors; ++v) stream(to + i + v * kLanes, load(from + i + v * kLanes));
  }
  stream_fence();
}

template <class Piece>
double best_bandwidth(int threads, int passes, int64_t bytes, Piece piece) {
  double best = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    parallel_for(threads, kPieces, piece);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(bytes) / elapsed.count());
  }
  return best;
}

}  // namespace

double read_roof(int threads, int passes) {
  const Buffer& from = source();
  return best_bandwidth(threads, passes, kBufferBytes,
                        [&](int64_t i, int) { read_piece(from.piece(i)); });
}

double copy_roof(int threads, int passes) {
  const Buffer& from = source();
  const Buffer& to = target();
  return best_bandwidth(threads, passes, 2 * kBufferBytes,
                        [&](int64_t i, int) { copy_piece(from.piece(i), to.piece(i)); });
}

}  // namespace npuless::bench
