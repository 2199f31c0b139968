// The bandwidth roofs: what `threads` threads move at best through buffers far larger than any
// cache, on huge pages, in order. Bytes per second, the best of several passes.
#pragma once

namespace npuless::bench {

// Reads only.
double read_roof(int threads, int passes);
// Reads one buffer and writes another past the caches; bytes read plus bytes written.
double copy_roof(int threads, int passes);

}  // namespace npuless::bench
