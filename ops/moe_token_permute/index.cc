#include "moe_token_permute/index.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/math.h"
#include "base/parallel.h"

namespace npuless::moe_token_permute {
namespace {

// 2048 counters fill a quarter of the smallest L1 data cache, and as many write streams stay within
// what its TLB reaches.
constexpr int kDigitBits = 11;
constexpr int64_t kDigits = int64_t{1} << kDigitBits;
// Slots per histogram: its 8 KiB are then small change beside the 256 KiB of ids.
constexpr int64_t kChunkSlots = 65536;

int64_t chunks_of(const IndexPlan& plan) {
  return ceil_div(plan.slots, kChunkSlots);
}

// The ids by slot, in the three ways that a matrix may hold them.
template <class T>
struct Dense {
  using Id = T;
  const T* data;
  T operator[](int64_t slot) const { return data[slot]; }
};

template <class T>
struct Strided {
  using Id = T;
  const T* data;
  int64_t stride;
  T operator[](int64_t slot) const { return data[slot * stride]; }
};

template <class T>
struct Rows {
  using Id = T;
  const T* data;
  int64_t row_stride;
  int64_t col_stride;
  uint32_t cols;
  T operator[](int64_t slot) const {
    const uint32_t s = static_cast<uint32_t>(slot);
    return data[int64_t{s / cols} * row_stride + int64_t{s % cols} * col_stride];
  }
};

template <class T, class Body>
void with_layout(const Matrix& m, const Body& body) {
  const T* data = static_cast<const T*>(m.data);
  const int64_t stride = m.cols > 1 ? m.col_stride : m.row_stride;
  if (m.rows > 1 && m.cols > 1 && m.row_stride != m.cols * m.col_stride) {
    body(Rows<T>{data, m.row_stride, m.col_stride, static_cast<uint32_t>(m.cols)});
  } else if (stride == 1) {
    body(Dense<T>{data});
  } else {
    body(Strided<T>{data, stride});
  }
}

template <class Body>
void with_ids(const Matrix& m, const Body& body) {
  if (m.dtype == DType::kInt64) {
    with_layout<int64_t>(m, body);
  } else {
    with_layout<int32_t>(m, body);
  }
}

// One pass moves the slots from `from`, null for slot order, to where the digit at `shift` puts
// them: their numbers into `order`, their positions into `rank`, each unless null.
struct Pass {
  const int32_t* from;
  int32_t* order;
  Vector rank;
  int shift;
  int64_t digits;
};

template <class IDS>
class Sorter {
  using Id = typename IDS::Id;
  using Distance = std::make_unsigned_t<Id>;

 public:
  Sorter(const IndexPlan& plan, IDS ids, void* workspace)
      : plan_(plan),
        ids_(ids),
        histograms_(plan.histograms.in(workspace)),
        extents_(plan.extents.in(workspace)),
        orders_{plan.orders[0].in(workspace), plan.orders[1].in(workspace)} {}

  const int32_t* sort(const Vector& rank, bool order_wanted) {
    const Distance distance = find_extent();
    Pass pass{};
    for (;; pass.shift += kDigitBits) {
      const Distance rest = distance >> pass.shift;
      const bool last = rest < static_cast<Distance>(kDigits);
      pass.digits = last ? static_cast<int64_t>(rest) + 1 : kDigits;
      pass.order = last && !order_wanted ? nullptr : orders_[pass.from == orders_[0] ? 1 : 0];
      if (last) pass.rank = rank;
      run(pass);
      if (last) return pass.order;
      pass.from = pass.order;
    }
  }

 private:
  template <class Body>
  void for_each_chunk(const Body& body) {
    parallel_for(plan_.threads, chunks_of(plan_), [&](int64_t chunk, int) {
      body(chunk, chunk * kChunkSlots, min64(plan_.slots, (chunk + 1) * kChunkSlots));
    });
  }

  // Sets min_ and answers max − min.
  Distance find_extent() {
    for_each_chunk([&](int64_t chunk, int64_t begin, int64_t end) {
      Id low = std::numeric_limits<Id>::max();
      Id high = std::numeric_limits<Id>::min();
      for (int64_t slot = begin; slot < end; ++slot) {
        const Id id = ids_[slot];
        low = id < low ? id : low;
        high = id > high ? id : high;
      }
      extents_[chunk] = {low, high};
    });
    IdExtent all = extents_[0];
    for (int64_t chunk = 1; chunk < chunks_of(plan_); ++chunk) {
      all.min = min64(all.min, extents_[chunk].min);
      all.max = max64(all.max, extents_[chunk].max);
    }
    min_ = static_cast<Distance>(all.min);
    return static_cast<Distance>(static_cast<Distance>(all.max) - min_);
  }

  void run(const Pass& pass) {
    for_each_chunk([&](int64_t chunk, int64_t begin, int64_t end) {
      int32_t* histogram = histograms_ + chunk * kDigits;
      std::fill_n(histogram, pass.digits, 0);
      for_each_slot(pass, begin, end, [=](int64_t, int64_t digit) { ++histogram[digit]; });
    });
    place_digits(pass.digits);
    for_each_chunk([&](int64_t chunk, int64_t begin, int64_t end) {
      move(pass, histograms_ + chunk * kDigits, begin, end);
    });
  }

  template <class Body>
  void for_each_slot(const Pass& pass, int64_t begin, int64_t end, const Body& body) const {
    const IDS ids = ids_;
    const Distance min = min_;
    const int shift = pass.shift;
    const auto digit_of = [=](int64_t slot) {
      const auto distance = static_cast<Distance>(static_cast<Distance>(ids[slot]) - min);
      return static_cast<int64_t>((distance >> shift) % static_cast<Distance>(kDigits));
    };
    if (pass.from == nullptr) {
      for (int64_t slot = begin; slot < end; ++slot) body(slot, digit_of(slot));
    } else {
      for (int64_t p = begin; p < end; ++p) body(pass.from[p], digit_of(pass.from[p]));
    }
  }

  void move(const Pass& pass, int32_t* next, int64_t begin, int64_t end) const {
    int32_t* order = pass.order;
    int32_t* rank = static_cast<int32_t*>(pass.rank.data);
    const int64_t stride = pass.rank.stride;
    const auto move_to = [&](auto put) {
      for_each_slot(pass, begin, end,
                    [=](int64_t slot, int64_t digit) { put(slot, next[digit]++); });
    };
    if (rank == nullptr) {
      move_to([=](int64_t slot, int32_t to) { order[to] = static_cast<int32_t>(slot); });
    } else if (order == nullptr) {
      move_to([=](int64_t slot, int32_t to) { rank[slot * stride] = to; });
    } else {
      move_to([=](int64_t slot, int32_t to) {
        order[to] = static_cast<int32_t>(slot);
        rank[slot * stride] = to;
      });
    }
  }

  // Counts become the position of each chunk's first slot with each digit: digits ascending, and
  // chunks ascending within a digit. The row after the last chunk's holds the running positions.
  void place_digits(int64_t digits) {
    const int64_t chunks = chunks_of(plan_);
    int32_t* next = histograms_ + chunks * kDigits;
    std::fill_n(next, digits, 0);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int32_t* counts = histograms_ + chunk * kDigits;
      for (int64_t d = 0; d < digits; ++d) next[d] += counts[d];
    }
    int32_t position = 0;
    for (int64_t d = 0; d < digits; ++d) position += std::exchange(next[d], position);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      int32_t* counts = histograms_ + chunk * kDigits;
      for (int64_t d = 0; d < digits; ++d) next[d] += std::exchange(counts[d], next[d]);
    }
  }

  const IndexPlan& plan_;
  const IDS ids_;
  int32_t* const histograms_;
  IdExtent* const extents_;
  int32_t* const orders_[2];
  Distance min_ = 0;
};

// first[id] for the ids above `below` up to `id`, all within [0, count].
void begin_lists(int64_t below, int64_t id, int64_t count, int64_t position, int32_t* first) {
  const int64_t last = min64(id, count);
  for (int64_t i = below < 0 ? 0 : min64(below, count) + 1; i <= last; ++i) {
    first[i] = static_cast<int32_t>(position);
  }
}

}  // namespace

void plan_index(int64_t slots, Ledger& ledger, IndexPlan& plan) {
  plan.slots = slots;
  plan.threads = num_threads();
  if (slots == 0) return;
  const int64_t chunks = chunks_of(plan);
  for (Piece<int32_t>& order : plan.orders) order = ledger.book<int32_t>(slots);
  plan.histograms = ledger.book<int32_t>((chunks + 1) * kDigits);
  plan.extents = ledger.book<IdExtent>(chunks);
}

const int32_t* build_index(const IndexPlan& plan, const Matrix& ids, const Vector& rank,
                           void* workspace) {
  const int32_t* order = nullptr;
  if (plan.slots == 0) return order;
  with_ids(ids, [&](auto view) { order = Sorter(plan, view, workspace).sort(rank, true); });
  return order;
}

void build_rank(const IndexPlan& plan, const Matrix& ids, const Vector& rank, void* workspace) {
  if (plan.slots == 0) return;
  with_ids(ids, [&](auto view) { Sorter(plan, view, workspace).sort(rank, false); });
}

void plan_lists(int64_t slots, int64_t count, Ledger& ledger, ListsPlan& plan) {
  plan_index(slots, ledger, plan.index);
  plan.count = count;
  plan.first = ledger.book<int32_t>(count + 1);
}

Lists build_lists(const ListsPlan& plan, const Matrix& ids, void* workspace) {
  const int64_t slots = plan.index.slots;
  int32_t* first = plan.first.in(workspace);
  const int32_t* order = build_index(plan.index, ids, {}, workspace);
  with_ids(ids, [&](auto view) {
    parallel_for(plan.index.threads, chunks_of(plan.index), [&](int64_t chunk, int) {
      const int64_t end = min64(slots, (chunk + 1) * kChunkSlots);
      for (int64_t p = chunk * kChunkSlots; p < end; ++p) {
        const int64_t below = p == 0 ? -1 : int64_t{view[order[p - 1]]};
        begin_lists(below, view[order[p]], plan.count, p, first);
      }
    });
    begin_lists(slots == 0 ? -1 : int64_t{view[order[slots - 1]]}, plan.count, plan.count, slots,
                first);
  });
  return {first, order};
}

}  // namespace npuless::moe_token_permute
