// A mixture-of-experts layer on expert-parallel ranks, emulated in one process, forward and
// backward: the router chooses experts, each rank takes the rows of its experts out of the order
// sorted by expert, applies them, and puts the weighted results back; the ranks' results are added.
// Backward the same way round. Every gradient is compared with central differences of the layer in
// double precision.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"

#define CHECK(call)                                                             \
  do {                                                                          \
    const int status = static_cast<int>(call);                                  \
    if (status != 0) {                                                          \
      const char* message = aclGetRecentErrMsg();                               \
      std::printf("%s failed: %d %s\n", #call, status, message ? message : ""); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

namespace {

const int64_t kTokens = 24;
const int64_t kTopk = 2;
const int64_t kHidden = 12;
const int64_t kInner = 20;  // between the two matrices of an expert
const int64_t kExperts = 6;
const int64_t kRanks = 3;
const int64_t kSlots = kTokens * kTopk;
const int64_t kExpertSize = 2 * kInner * kHidden;  // up [inner, hidden], down [hidden, inner]

// Device memory with its tensor; freed together.
class Tensor {
 public:
  Tensor(aclDataType type, const std::vector<int64_t>& shape) : bytes_(4) {
    for (int64_t dim : shape) bytes_ *= static_cast<size_t>(dim);
    CHECK(aclrtMalloc(&device_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST));
    handle = aclCreateTensor(shape.data(), shape.size(), type, nullptr, 0, ACL_FORMAT_ND,
                             shape.data(), shape.size(), device_);
  }
  ~Tensor() {
    aclDestroyTensor(handle);
    aclrtFree(device_);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  template <class T>
  void upload(const std::vector<T>& host) {
    CHECK(aclrtMemcpy(device_, bytes_, host.data(), host.size() * sizeof(T),
                      ACL_MEMCPY_HOST_TO_DEVICE));
  }
  std::vector<float> download() const {
    std::vector<float> host(bytes_ / sizeof(float));
    CHECK(aclrtMemcpy(host.data(), bytes_, device_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST));
    return host;
  }

  aclTensor* handle;

 private:
  size_t bytes_;
  void* device_ = nullptr;
};

typedef aclnnStatus (*Phase2)(void*, uint64_t, aclOpExecutor*, aclrtStream);

void run(Phase2 phase2, uint64_t workspace_size, aclOpExecutor* executor, aclrtStream stream) {
  void* workspace = nullptr;
  if (workspace_size > 0) {
    CHECK(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  CHECK(phase2(workspace, workspace_size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  if (workspace != nullptr) CHECK(aclrtFree(workspace));
}

// An expert: y = down · tanh(up · x). T is float in the layer, double in the reference.
template <class T>
void apply_expert(const T* weights, const T* x, T* y) {
  const T* down = weights + kInner * kHidden;
  std::fill(y, y + kHidden, T(0));
  for (int64_t i = 0; i < kInner; i++) {
    const T inner = std::tanh(std::inner_product(x, x + kHidden, weights + i * kHidden, T(0)));
    for (int64_t h = 0; h < kHidden; h++) y[h] += down[h * kInner + i] * inner;
  }
}

// Given dy: dx, and the gradient of the weights added to.
void apply_expert_grad(const float* weights, const float* x, const float* dy, float* dx,
                       float* dweights) {
  const float* down = weights + kInner * kHidden;
  float* ddown = dweights + kInner * kHidden;
  std::fill(dx, dx + kHidden, 0.0f);
  for (int64_t i = 0; i < kInner; i++) {
    const float* up = weights + i * kHidden;
    const float inner = std::tanh(std::inner_product(x, x + kHidden, up, 0.0f));
    float dinner = 0;
    for (int64_t h = 0; h < kHidden; h++) {
      dinner += down[h * kInner + i] * dy[h];
      ddown[h * kInner + i] += inner * dy[h];
    }
    dinner *= 1 - inner * inner;
    for (int64_t h = 0; h < kHidden; h++) {
      dx[h] += dinner * up[h];
      dweights[i * kHidden + h] += dinner * x[h];
    }
  }
}

// The router's probabilities of one token: softmax(router · x) over all experts.
template <class T>
std::vector<T> route(const T* router, const T* x) {
  std::vector<T> probs;
  for (int64_t e = 0; e < kExperts; e++) {
    probs.push_back(std::exp(std::inner_product(x, x + kHidden, router + e * kHidden, T(0))));
  }
  const T sum = std::accumulate(probs.begin(), probs.end(), T(0));
  for (T& p : probs) p /= sum;
  return probs;
}

template <class T>
struct Parameters {
  std::vector<T> x;        // [tokens, hidden]
  std::vector<T> router;   // [experts, hidden]
  std::vector<T> experts;  // [experts, expert size]
};

// What one rank keeps on its device: rows [begin, end) of the order sorted by expert.
struct Rank {
  Rank(int64_t begin, int64_t end)
      : ends{begin, end},
        range(aclCreateIntArray(ends, 2)),
        x(ACL_FLOAT, {kTokens, kHidden}),
        ids(ACL_INT32, {kTokens, kTopk}),
        probs(ACL_FLOAT, {kTokens, kTopk}),
        positions(ACL_INT32, {kSlots}),
        rows(ACL_FLOAT, {row_count(), kHidden}),
        row_probs(ACL_FLOAT, {row_count()}),
        results(ACL_FLOAT, {row_count(), kHidden}),
        y(ACL_FLOAT, {kTokens, kHidden}),
        dy(ACL_FLOAT, {kTokens, kHidden}),
        dresults(ACL_FLOAT, {row_count(), kHidden}),
        drows(ACL_FLOAT, {row_count(), kHidden}),
        dx(ACL_FLOAT, {kTokens, kHidden}),
        dprobs(ACL_FLOAT, {kTokens, kTopk}),
        unused(ACL_FLOAT, {kTokens, kTopk}) {}
  ~Rank() { aclDestroyIntArray(range); }

  // Buffers may have more rows than the range: an idle rank has one, so that none is empty.
  int64_t row_count() const { return std::max<int64_t>(1, ends[1] - ends[0]); }

  void permute(aclrtStream stream) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnMoeTokenPermuteWithEpGetWorkspaceSize(x.handle, ids.handle, probs.handle, range, 0,
                                                     false, rows.handle, positions.handle,
                                                     row_probs.handle, &size, &executor));
    run(&aclnnMoeTokenPermuteWithEp, size, executor, stream);
  }
  void unpermute(aclrtStream stream) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(results.handle, positions.handle,
                                                       probs.handle, kTopk, range, false, nullptr,
                                                       y.handle, &size, &executor));
    run(&aclnnMoeTokenUnpermuteWithEp, size, executor, stream);
  }
  void unpermute_grad(aclrtStream stream) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
        dy.handle, positions.handle, results.handle, probs.handle, false, nullptr, range, kTopk,
        dresults.handle, dprobs.handle, &size, &executor));
    run(&aclnnMoeTokenUnpermuteWithEpGrad, size, executor, stream);
  }
  // The rows' probabilities went nowhere, so they have no gradient and `unused` is not written.
  void permute_grad(aclrtStream stream) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(drows.handle, positions.handle, nullptr,
                                                         kTopk, range, false, dx.handle,
                                                         unused.handle, &size, &executor));
    run(&aclnnMoeTokenPermuteWithEpGrad, size, executor, stream);
  }

  int64_t ends[2];
  aclIntArray* range;
  Tensor x, ids, probs, positions, rows, row_probs, results, y, dy, dresults, drows, dx, dprobs,
      unused;
};

struct Routing {
  std::vector<int32_t> ids;  // [tokens, topk]
  std::vector<float> probs;  // [tokens, topk]
};

Routing choose_experts(const Parameters<float>& p) {
  Routing routing;
  for (int64_t t = 0; t < kTokens; t++) {
    const std::vector<float> probs = route(p.router.data(), &p.x[t * kHidden]);
    std::vector<int32_t> order(kExperts);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + kTopk, order.end(),
                      [&](int32_t a, int32_t b) { return probs[a] > probs[b]; });
    for (int64_t j = 0; j < kTopk; j++) {
      routing.ids.push_back(order[j]);
      routing.probs.push_back(probs[order[j]]);
    }
  }
  return routing;
}

// The expert of each position in the order sorted by expert.
std::vector<int32_t> sorted_experts(const Routing& routing) {
  std::vector<int32_t> sorted = routing.ids;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// One rank's part of the layer: the experts [first, last). Adds to y and to the gradients.
void run_rank(int64_t first, int64_t last, const Parameters<float>& p, const Routing& routing,
              const std::vector<float>& dy, aclrtStream stream, std::vector<double>& y,
              Parameters<float>& grad, std::vector<float>& dprobs) {
  const std::vector<int32_t> experts = sorted_experts(routing);
  const int64_t begin = std::lower_bound(experts.begin(), experts.end(), first) - experts.begin();
  const int64_t end = std::lower_bound(experts.begin(), experts.end(), last) - experts.begin();
  Rank rank(begin, end);
  rank.x.upload(p.x);
  rank.ids.upload(routing.ids);
  rank.probs.upload(routing.probs);
  rank.dy.upload(dy);

  rank.permute(stream);
  const std::vector<float> rows = rank.rows.download();
  std::vector<float> results(rows.size());
  for (int64_t r = 0; r < end - begin; r++) {
    const float* weights = &p.experts[experts[begin + r] * kExpertSize];
    apply_expert(weights, &rows[r * kHidden], &results[r * kHidden]);
  }
  rank.results.upload(results);
  rank.unpermute(stream);

  rank.unpermute_grad(stream);
  const std::vector<float> dresults = rank.dresults.download();
  std::vector<float> drows(rows.size());
  for (int64_t r = 0; r < end - begin; r++) {
    const int64_t weights = experts[begin + r] * kExpertSize;
    apply_expert_grad(&p.experts[weights], &rows[r * kHidden], &dresults[r * kHidden],
                      &drows[r * kHidden], &grad.experts[weights]);
  }
  rank.drows.upload(drows);
  rank.permute_grad(stream);

  const std::vector<float> part = rank.y.download();
  const std::vector<float> dx = rank.dx.download();
  const std::vector<float> part_of_dprobs = rank.dprobs.download();
  for (int64_t i = 0; i < kTokens * kHidden; i++) y[i] += part[i];
  for (int64_t i = 0; i < kTokens * kHidden; i++) grad.x[i] += dx[i];
  for (int64_t i = 0; i < kSlots; i++) dprobs[i] += part_of_dprobs[i];
}

// From the chosen probabilities through the softmax to the router and the tokens.
void route_grad(const Parameters<float>& p, const Routing& routing,
                const std::vector<float>& dprobs, Parameters<float>& grad) {
  for (int64_t t = 0; t < kTokens; t++) {
    const std::vector<float> probs = route(p.router.data(), &p.x[t * kHidden]);
    std::vector<float> dlogits(kExperts, 0.0f);
    for (int64_t j = 0; j < kTopk; j++) {
      const int32_t chosen = routing.ids[t * kTopk + j];
      const float scale = dprobs[t * kTopk + j] * probs[chosen];
      for (int64_t e = 0; e < kExperts; e++) dlogits[e] += scale * ((e == chosen) - probs[e]);
    }
    for (int64_t e = 0; e < kExperts; e++) {
      for (int64_t h = 0; h < kHidden; h++) {
        grad.router[e * kHidden + h] += dlogits[e] * p.x[t * kHidden + h];
        grad.x[t * kHidden + h] += dlogits[e] * p.router[e * kHidden + h];
      }
    }
  }
}

// The layer, token by token, with the choice of experts held fixed.
std::vector<double> reference(const Parameters<double>& p, const Routing& routing) {
  std::vector<double> y(kTokens * kHidden);
  for (int64_t t = 0; t < kTokens; t++) {
    const std::vector<double> probs = route(p.router.data(), &p.x[t * kHidden]);
    for (int64_t j = 0; j < kTopk; j++) {
      const int32_t e = routing.ids[t * kTopk + j];
      double result[kHidden];
      apply_expert(&p.experts[e * kExpertSize], &p.x[t * kHidden], result);
      for (int64_t h = 0; h < kHidden; h++) y[t * kHidden + h] += probs[e] * result[h];
    }
  }
  return y;
}

// The gradient of <y, dy> in one group of the parameters.
std::vector<double> differences(Parameters<double>& p, std::vector<double>& group,
                                const Routing& routing, const std::vector<float>& dy) {
  const double step = 1e-5;
  const auto objective = [&] {
    const std::vector<double> y = reference(p, routing);
    return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
  };
  std::vector<double> gradient;
  for (double& value : group) {
    const double before = value;
    value = before + step;
    const double above = objective();
    value = before - step;
    gradient.push_back((above - objective()) / (2 * step));
    value = before;
  }
  return gradient;
}

// Largest |difference| against `bound` times the largest magnitude.
template <class T>
bool report(const char* name, const std::vector<T>& actual, const std::vector<double>& expected) {
  // fp32 sums of at most some hundred terms, a few of them one after the other.
  const double bound = std::ldexp(1.0, -15);
  double difference = 0;
  double magnitude = 0;
  for (size_t i = 0; i < expected.size(); i++) {
    const double d = std::fabs(actual[i] - expected[i]);
    difference = std::isnan(d) ? HUGE_VAL : std::max(difference, d);
    magnitude = std::max(magnitude, std::fabs(expected[i]));
  }
  const bool good = difference <= bound * magnitude;
  std::printf("  %-9s [0]  %13.6e  %13.6e\n", name, static_cast<double>(actual[0]), expected[0]);
  std::printf("  %-9s largest difference %.2e, allowed %.2e: %s\n", name, difference,
              bound * magnitude, good ? "ok" : "WRONG");
  return good;
}

std::vector<float> random_numbers(int64_t count, float scale, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values;
  for (int64_t i = 0; i < count; i++) values.push_back(scale * normal(random));
  return values;
}

std::vector<double> as_double(const std::vector<float>& values) {
  return std::vector<double>(values.begin(), values.end());
}

}  // namespace

int main() {
  std::mt19937 random(11);
  const Parameters<float> p = {random_numbers(kTokens * kHidden, 1.0f, random),
                               random_numbers(kExperts * kHidden, 0.5f, random),
                               random_numbers(kExperts * kExpertSize, 0.3f, random)};
  const std::vector<float> dy = random_numbers(kTokens * kHidden, 1.0f, random);
  const Routing routing = choose_experts(p);
  std::vector<double> y(kTokens * kHidden);
  std::vector<float> dprobs(kSlots);
  Parameters<float> grad = {std::vector<float>(p.x.size()), std::vector<float>(p.router.size()),
                            std::vector<float>(p.experts.size())};

  aclrtStream stream = nullptr;
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtCreateStream(&stream));
  for (int64_t r = 0; r < kRanks; r++) {
    run_rank(kExperts * r / kRanks, kExperts * (r + 1) / kRanks, p, routing, dy, stream, y, grad,
             dprobs);
  }
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  route_grad(p, routing, dprobs, grad);

  std::printf("  tokens %d, topk %d, hidden %d, experts %d on %d ranks, fp32\n",
              static_cast<int>(kTokens), static_cast<int>(kTopk), static_cast<int>(kHidden),
              static_cast<int>(kExperts), static_cast<int>(kRanks));
  std::printf("  %-9s      %13s  %13s\n", "", "operators", "double");
  Parameters<double> exact = {as_double(p.x), as_double(p.router), as_double(p.experts)};
  const bool y_good = report("y", y, reference(exact, routing));
  const bool x_good = report("dx", grad.x, differences(exact, exact.x, routing, dy));
  const bool router_good =
      report("drouter", grad.router, differences(exact, exact.router, routing, dy));
  const bool experts_good =
      report("dexperts", grad.experts, differences(exact, exact.experts, routing, dy));
  return y_good && x_good && router_good && experts_good ? 0 : 1;
}
