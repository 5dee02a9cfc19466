// One block samples one id: rank the best, cut by top-k and top-p, take the one that the uniform
// number selects.
// The rules are those of engine/worker/state/sampling.py; equal logits rank by their ids.

constexpr int BOOKS = POSITIONS - 1;
constexpr float UNREACHED = 3e38f;
struct SamplingTensors { float inverse_temperature, top_k, top_p, sample_mask; };

// Larger numbers have larger keys, and of equal numbers the lower id.
DEVICE u64 key_of(float logit, u32 id) {
  u32 bits = __float_as_uint(logit);
  bits = bits >> 31 ? ~bits : bits | 0x80000000u;
  return (u64)bits << 32 | (0xffffffffu - id);
}
DEVICE float logit_of(u64 key) {
  u32 bits = (u32)(key >> 32);
  return __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits);
}
DEVICE u32 id_of(u64 key) { return 0xffffffffu - (u32)key; }

// How many of keys [count] are larger than this one.
DEVICE int rank_of(u64 key, const u64* keys, int count) {
  int rank = 0;
#pragma unroll 8
  for (int i = 0; i < count; i++) rank += keys[i] > key;
  return rank;
}

// By one warp, from the best down: cumulative probabilities after temperature, top-k and top-p.
// sums [count]: UNREACHED for ids that may not be sampled. -> the last sum of one that may.
DEVICE float sum_up(const u64* ranked, float* sums, int count, const SamplingTensors& sampling) {
  auto mass = [&](int place) {
    bool in = place < count && place < sampling.top_k;
    float above = logit_of(ranked[0]) * sampling.inverse_temperature;
    return in ? expf(logit_of(ranked[place]) * sampling.inverse_temperature - above) : 0.f;
  };
  float whole = 0, before = 0, last = 0;
#pragma unroll 1
  for (int first = 0; first < count; first += 32) whole += warp_sum(mass(first + lane_id()));
#pragma unroll 1
  for (int first = 0; first < count; first += 32) {
    int place = first + lane_id();
    float share = mass(place) / whole, sum = share;
#pragma unroll 1
    for (int d = 1; d < 32; d *= 2) {
      float below = from_lane_below(sum, d);
      if (lane_id() >= d) sum += below;
    }
    sum += before;
    before = from_lane(sum, 31);
    bool kept = sum - share < sampling.top_p && share > 0;
    if (place < count) sums[place] = kept ? sum : UNREACHED;
    if (kept) last = sum;
  }
  for (int mask = 16; mask; mask /= 2) last = fmaxf(last, from_lane_xor(last, mask));
  return last;
}

// By one warp, from ids in ranked order [count].
DEVICE u32 draw(const u64* ranked, float* sums, int count, const SamplingTensors& sampling, float uniform) {
  float target = uniform * sampling.sample_mask * sum_up(ranked, sums, count, sampling), place = 0;
#pragma unroll 1
  for (int i = lane_id(); i < count; i += 32) place += sums[i] <= target;
  return id_of(ranked[(int)warp_sum(place)]);
}

// A lower bound of the block's `count` best keys, from each thread's best: the bests of `count`
// threads are `count` keys. bests [WORKERS]; found: zero before.
DEVICE u64 bound_of(u64 best, u32* bests, u32* found, int count) {
  u32 mine = (u32)(best >> 32);
  bests[threadIdx.x] = mine;
  sync_workers();
  int above = 0;
#pragma unroll 8
  for (int i = 0; i < WORKERS; i += 4) {
    uint4 others = *(const uint4*)(bests + i);
    above += (others.x >= mine) + (others.y >= mine) + (others.z >= mine) + (others.w >= mine);
  }
  if (count <= WORKERS && above >= count) raise_to(found, mine);
  sync_workers();
  return (u64)*found << 32;
}

// Sample an id from keys, EACH per thread; every thread gets it. `count` keys are ranked.
// space: room for all keys twice; words: four counters.
template <int EACH>
DEVICE u32 choose(u64* space, u32* words, int count, const SamplingTensors& sampling, float uniform,
                  const u64 (&keys)[EACH]) {
  u64 *found = space, *ranked = space + EACH * WORKERS, best = 0;
  if (threadIdx.x == 0) words[0] = 0, words[1] = 0;
#pragma unroll
  for (int i = 0; i < EACH; i++) best = keys[i] > best ? keys[i] : best;
  u64 least = bound_of(best, (u32*)ranked, words + 1, count);
#pragma unroll
  for (int i = 0; i < EACH; i++)
    if (keys[i] >= least) found[count_up(words)] = keys[i];
  sync_workers();
  int candidates = words[0];
  for (int i = threadIdx.x; i < candidates; i += WORKERS) {
    int rank = rank_of(found[i], found, candidates);
    if (rank < count) ranked[rank] = found[i];
  }
  sync_workers();
  if (warp_id() == 0) {
    u32 id = draw(ranked, (float*)found, count, sampling, uniform);
    if (lane_id() == 0) words[2] = id;
  }
  sync_workers();
  return words[2];
}

// One block sums one row's embeddings, rounded after each, as tensors are:
// first [rows, WIDE] and embeddings [BOOKS] of [CODES, WIDE] at codes [rows, BOOKS] -> total.
DEVICE void add_embeddings(const u16* first, const u16* const* embeddings, const u64* codes,
                           u16* total, u64 row) {
  for (int i = threadIdx.x * 2; i < WIDE; i += WORKERS * 2) {
    u32 sum = *(const u32*)(first + row * WIDE + i);
#pragma unroll
    for (int book = 0; book < BOOKS; book++) {
      u64 code = codes[row * BOOKS + book];
      u32 other = *(const u32*)(embeddings[book] + code * WIDE + i);
      sum = pack(low(sum) + low(other), high(sum) + high(other));
    }
    *(u32*)(total + row * WIDE + i) = sum;
  }
}
