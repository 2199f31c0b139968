#include "moe_token_permute/permute_with_routing_map.h"

#include "base/parallel.h"
#include "moe_token_permute/kernel_arguments.h"

namespace npuless::moe_token_permute {
namespace {

// Puts tokens of one chunk into their rows.
class Placer {
 public:
  explicit Placer(const MapPermutePlan& plan)
      : args_(plan.args), mover_(plan.copy, args_.rows), rows_(args_.rows.to.rows) {}

  void place(int64_t token, int64_t expert, int64_t row) {
    mover_.move(token, row);
    if (args_.has_probs) copy_element(args_.probs, token, expert, args_.permuted_probs, row);
  }

  // `next` holds each expert's next row.
  void place_chosen(int64_t token, int64_t topk, int64_t* next) {
    int64_t j = 0;
    for_each_chosen(args_.map, token, [&](int64_t expert) {
      const int64_t row = next[expert]++;
      const bool kept = row < rows_;
      if (kept) place(token, expert, row);
      if (j < topk) set_index(token * topk + j++, kept ? row : -1);
    });
    for (; j < topk; ++j) set_index(token * topk + j, -1);
  }

  // `chosen` holds how many earlier tokens chose each expert, `totals` how many do in all.
  void place_padded(int64_t token, int64_t capacity, int64_t* chosen, const int64_t* totals) {
    for (int64_t expert = 0; expert < args_.map.cols; ++expert) {
      const bool choice = at<unsigned char>(args_.map, token, expert) != 0;
      const int64_t skipped = token - chosen[expert];
      const int64_t place_in = choice ? chosen[expert]++ : totals[expert] + skipped;
      if (place_in >= capacity) continue;
      set_index(expert * capacity + place_in, token);
      place(token, expert, expert * capacity + place_in);
    }
  }

 private:
  void set_index(int64_t i, int64_t value) {
    at<int32_t>(args_.sorted_indices, i) = static_cast<int32_t>(value);
  }

  const MapPermuteArgs& args_;
  Mover mover_;
  const int64_t rows_;
};

// body(placer, token, row of `before`) for all tokens.
template <class Body>
void for_each_token(const MapPermutePlan& plan, const MapCounts& counts, const Body& body) {
  parallel_for(plan.map.threads, plan.map.chunks(), [&](int64_t chunk, int) {
    Placer placer(plan);
    const int64_t end = min64(plan.map.tokens, (chunk + 1) * plan.map.chunk_tokens);
    for (int64_t token = chunk * plan.map.chunk_tokens; token < end; ++token) {
      body(placer, token, counts.before + chunk * plan.map.experts);
    }
  });
}

void permute_indexed(const MapPermutePlan& plan, const MapCounts& counts) {
  const MapPermuteArgs& args = plan.args;
  const int64_t rows = args.rows.to.rows;
  const int64_t topk = rows / max64(1, plan.map.tokens);
  const int64_t chosen = min64(rows, order_by_expert(plan.map, counts));
  for_each_token(plan, counts, [=](Placer& placer, int64_t token, int64_t* next) {
    placer.place_chosen(token, topk, next);
  });
  zero_rows(args.rows, chosen, rows, plan.map.threads);
  if (args.has_probs) zero_elements(args.permuted_probs, chosen, rows);
}

void permute_padded(const MapPermutePlan& plan, const MapCounts& counts) {
  const int64_t capacity = plan.args.rows.to.rows / max64(1, plan.map.experts);
  for_each_token(plan, counts, [=](Placer& placer, int64_t token, int64_t* chosen) {
    placer.place_padded(token, capacity, chosen, counts.totals);
  });
}

}  // namespace

Status plan_map_permute(const MapPermuteArgs& args, MapPermutePlan& plan) {
  isa::Level level{};
  NPULESS_TRY(isa::active_level(level));
  Ledger ledger;
  plan.args = args;
  plan.copy = plan_copy(args.rows, level);
  plan_map(args.map, ledger, plan.map);
  plan.workspace_bytes = ledger.bytes();
  return {};
}

Status run_map_permute(const MapPermutePlan& plan, void* workspace) {
  const MapCounts counts = count_map(plan.map, plan.args.map, workspace);
  if (plan.args.drop_and_pad) {
    permute_padded(plan, counts);
  } else {
    permute_indexed(plan, counts);
  }
  return {};
}

}  // namespace npuless::moe_token_permute
