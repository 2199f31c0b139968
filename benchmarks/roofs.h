// The bandwidth roofs: what `threads` threads move at best through buffers far larger than any
// cache, on huge pages, in order. Bytes per second, the best of several passes.
#pragma once

namespace npuless::bench {

// A kernel's mix of traffic: for each `reads` cache lines read, `writes` are written past the
// caches. {1, 1} copies, {8, 1} sums eight rows, {1, 0} only reads.
struct Mix {
  int reads;
  int writes;
};

// Bytes read plus bytes written.
double memory_roof(Mix mix, int threads, int passes);

}  // namespace npuless::bench
