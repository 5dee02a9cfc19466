// Attention of one new position over the positions of a frame: one warp per row and group of
// query heads.

constexpr int DIMS = HEAD_DIM / 32;  // of a head per lane, next to each other
constexpr int GROUP = HEADS / KV_HEADS;
constexpr int QKV = (HEADS + 2 * KV_HEADS) * HEAD_DIM;
constexpr float NEVER = -3e38f;  // below every score
static_assert(GROUP <= 2, "one or two queries per group");
static_assert(POSITIONS <= 16, "two lanes take a position");
static_assert(DIMS == 4, "a lane takes four dimensions");

// A lane's part of a group's new queries, key and value: dimensions from `first` on.
struct Taken { uint2 queries[GROUP], key, value; };

DEVICE bool missing(uint2 pairs) { return pairs.x == NOTHING || pairs.y == NOTHING; }

// qkv [QKV] of one row, written by other blocks or, if POSTED, perhaps still to be posted by them.
DEVICE Taken take(const u16* qkv, int group, int first) {
  const u16* key = qkv + (HEADS + group) * HEAD_DIM + first;
  for (u32 looks = 0;; looks++) {
    Taken t;
#pragma unroll
    for (int i = 0; i < GROUP; i++)
      t.queries[i] = fresh8(qkv + (group * GROUP + i) * HEAD_DIM + first);
    t.key = fresh8(key), t.value = fresh8(key + KV_HEADS * HEAD_DIM);
    bool late = missing(t.queries[0]) || missing(t.queries[GROUP - 1]) || missing(t.key) ||
                missing(t.value);
    if (!POSTED || !late) {
      if (POSTED) sync_warp();
      return t;
    }
    look_again(looks);
  }
}

struct Part { float x[DIMS]; };  // a lane's part of a vector

DEVICE Part unpack(uint2 pairs) {
  return {{low(pairs.x), high(pairs.x), low(pairs.y), high(pairs.y)}};
}
DEVICE uint2 packed(const Part& p) {
  return make_uint2(pack(p.x[0], p.x[1]), pack(p.x[2], p.x[3]));
}
DEVICE float warp_sum(float x) {
#pragma unroll
  for (int mask = 16; mask; mask /= 2) x += from_lane_xor(x, mask);
  return x;
}
DEVICE float warp_most(float x) {
#pragma unroll
  for (int mask = 16; mask; mask /= 2) x = fmaxf(x, from_lane_xor(x, mask));
  return x;
}
DEVICE float dot(const Part& a, const Part& b) {
  return a.x[0] * b.x[0] + a.x[1] * b.x[1] + a.x[2] * b.x[2] + a.x[3] * b.x[3];
}

// A lane's cos and sin: loaded before the queries and keys are there.
struct Rotary { float4 cosines, sines; };
DEVICE float4 four(const float* at) { return *(const float4*)at; }

// RMS norm, rotary embedding, rounding.
DEVICE Part positioned(const Part& p, float4 weight, const Rotary& angles) {
  float scale = quick_root(warp_sum(dot(p, p)) * (1.f / HEAD_DIM) + EPS);
  const float w[DIMS] = {weight.x, weight.y, weight.z, weight.w};
  const float c[DIMS] = {angles.cosines.x, angles.cosines.y, angles.cosines.z, angles.cosines.w};
  const float s[DIMS] = {angles.sines.x, angles.sines.y, angles.sines.z, angles.sines.w};
  Part rotated;
#pragma unroll
  for (int i = 0; i < DIMS; i++) {
    float x = rounded(p.x[i] * scale * w[i]);
    rotated.x[i] = x * c[i] + from_lane_xor(x, 16) * s[i];  // half a head away
  }
  return unpack(packed(rotated));
}

// A frame's keys or values up to the newest; later positions are zero.
struct Past { uint2 at[POSITIONS]; };

// Sums over lanes of COUNT numbers each: lane i gets the sum of number i / 2. Each round sends half
// of the numbers to the lane that keeps them.
template <int COUNT> DEVICE float scattered_sums(float (&numbers)[COUNT], int mask) {
  if constexpr (COUNT == 1) {
    return numbers[0] + from_lane_xor(numbers[0], mask);
  } else {
    bool upper = lane_id() & mask;
    float sums[COUNT / 2];
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) {
      float mine = upper ? numbers[COUNT / 2 + i] : numbers[i];
      float given = upper ? numbers[i] : numbers[COUNT / 2 + i];
      sums[i] = mine + from_lane_xor(given, mask);
    }
    return scattered_sums<COUNT / 2>(sums, mask / 2);
  }
}

// A head's query over its group's keys and values. Two lanes hold a position's softmax weight.
DEVICE Part mix(const Part& q, const Past& keys, const Past& values, int position) {
  float scores[16];
#pragma unroll
  for (int t = 0; t < 16; t++) scores[t] = t < POSITIONS ? dot(q, unpack(keys.at[t])) : 0.f;
  float score = scattered_sums<16>(scores, 16);
  bool past = lane_id() / 2 <= position;
  score = past ? score * (1.f / HEAD_DIM_ROOT) : NEVER;
  float best = warp_most(score), share = past ? quick_exp(score - best) : 0.f;
  share = quick_ratio(share, warp_sum(share) * 0.5f);
  Part attended = {};
#pragma unroll
  for (int t = 0; t < POSITIONS; t++) {
    float weight = from_lane(share, t * 2);
    Part value = unpack(values.at[t]);
#pragma unroll
    for (int i = 0; i < DIMS; i++) attended.x[i] += weight * value.x[i];
  }
  return attended;
}

DEVICE Past past_of(const u16* cached, int position) {
  Past past = {};
#pragma unroll
  for (int t = 0; t < POSITIONS - 1; t++)
    if (t < position) past.at[t] = fresh8(cached + t * KV_STRIDE);
  return past;
}
DEVICE void add_newest(Past& past, u16* cached, int position, uint2 newest) {
  *(uint2*)(cached + position * KV_STRIDE) = newest;
#pragma unroll
  for (int t = 0; t < POSITIONS; t++)
    if (t == position) past.at[t] = newest;
}

// One row's new queries, keys and values, qkv [QKV], of one group of heads. Earlier keys and values,
// [POSITIONS, HEAD_DIM], are read by the lanes that wrote them.
// emit(dimension, pairs) receives a lane's part of each head.
template <class Emit>
DEVICE void attend(const u16* qkv, int group, int position, u16* keys, u16* values,
                   const float* norms, const float* rotary, Emit emit) {
  int first = lane_id() * DIMS;
  Past old_keys = past_of(keys + first, position), old_values = past_of(values + first, position);
  float4 query_norm = four(norms + first), key_norm = four(norms + HEAD_DIM + first);
  Rotary angles = {four(rotary + first), four(rotary + HEAD_DIM + first)};
  Taken taken = take(qkv, group, first);
  uint2 key = packed(positioned(unpack(taken.key), key_norm, angles));
  add_newest(old_keys, keys + first, position, key);
  add_newest(old_values, values + first, position, taken.value);
#pragma unroll 1
  for (int i = 0; i < GROUP; i++) {
    Part q = positioned(unpack(i ? taken.queries[GROUP - 1] : taken.queries[0]), query_norm, angles);
    emit((group * GROUP + i) * HEAD_DIM + first, packed(mix(q, old_keys, old_values, position)));
  }
}
