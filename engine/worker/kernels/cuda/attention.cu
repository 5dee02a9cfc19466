// Attention of one new position over the few of a frame: a warp for each row and group of
// query heads.

constexpr int DIMS = HEAD_DIM / 32;  // of a head, a lane: neighbours
constexpr int GROUP = HEADS / KV_HEADS;
constexpr int QKV = (HEADS + 2 * KV_HEADS) * HEAD_DIM;
constexpr float NEVER = -3e38f;  // below any score
static_assert(GROUP <= 2, "one query or another");
static_assert(POSITIONS <= 16, "two lanes take a position");
static_assert(DIMS == 4, "a lane takes four dimensions");

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

// What a lane needs of norms and turns: fetched before there is anything to norm.
struct Turn { float4 cosines, sines; };
DEVICE float4 four(const float* at) { return *(const float4*)at; }

// Normed, turned and rounded.
DEVICE Part positioned(const Part& p, float4 weight, const Turn& turn) {
  float scale = quick_root(warp_sum(dot(p, p)) * (1.f / HEAD_DIM) + EPS);
  const float w[DIMS] = {weight.x, weight.y, weight.z, weight.w};
  const float c[DIMS] = {turn.cosines.x, turn.cosines.y, turn.cosines.z, turn.cosines.w};
  const float s[DIMS] = {turn.sines.x, turn.sines.y, turn.sines.z, turn.sines.w};
  Part turned;
#pragma unroll
  for (int i = 0; i < DIMS; i++) {
    float x = rounded(p.x[i] * scale * w[i]);
    turned.x[i] = x * c[i] + from_lane_xor(x, 16) * s[i];  // half a head away
  }
  return unpack(packed(turned));
}

// A frame's keys or values so far, the newest included; what is to come is zero.
struct Past { uint2 at[POSITIONS]; };

// The sums over lanes of COUNT numbers each: lane i is left with the sum of number i / 2. Each
// round gives half of the numbers away for the other half's parts.
template <int COUNT> DEVICE float scattered_sums(float (&numbers)[COUNT], int mask) {
  if constexpr (COUNT == 1) {
    return numbers[0] + from_lane_xor(numbers[0], mask);
  } else {
    bool upper = lane_id() & mask;
    float kept[COUNT / 2];
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) {
      float mine = upper ? numbers[COUNT / 2 + i] : numbers[i];
      float given = upper ? numbers[i] : numbers[COUNT / 2 + i];
      kept[i] = mine + from_lane_xor(given, mask);
    }
    return scattered_sums<COUNT / 2>(kept, mask / 2);
  }
}

// A head's query against its group's keys and values. A pair of lanes takes a position's share.
DEVICE Part mix(const Part& q, const Past& keys, const Past& values, int position) {
  float scores[16];
#pragma unroll
  for (int t = 0; t < 16; t++) scores[t] = t < POSITIONS ? dot(q, unpack(keys.at[t])) : 0.f;
  float score = scattered_sums<16>(scores, 16);
  bool past = lane_id() / 2 <= position;
  score = past ? score * (1.f / HEAD_DIM_ROOT) : NEVER;
  float best = warp_most(score), share = past ? quick_exp(score - best) : 0.f;
  share = quick_ratio(share, warp_sum(share) * 0.5f);
  Part mixed = {};
#pragma unroll
  for (int t = 0; t < POSITIONS; t++) {
    float own = from_lane(share, t * 2);
    Part value = unpack(values.at[t]);
#pragma unroll
    for (int i = 0; i < DIMS; i++) mixed.x[i] += own * value.x[i];
  }
  return mixed;
}

DEVICE Past past_of(const u16* kept, int position) {
  Past past = {};
#pragma unroll
  for (int t = 0; t < POSITIONS - 1; t++)
    if (t < position) past.at[t] = fresh8(kept + t * KEPT_STEP);
  return past;
}
DEVICE void add_newest(Past& past, u16* kept, int position, uint2 newest) {
  *(uint2*)(kept + position * KEPT_STEP) = newest;
#pragma unroll
  for (int t = 0; t < POSITIONS; t++)
    if (t == position) past.at[t] = newest;
}

// One row's new queries, keys and values, qkv [QKV], of one group of heads, with its keys and
// values so far, [POSITIONS, HEAD_DIM], which are read by the lanes that wrote them.
// emit(dimension, pairs) gets a lane's part of each head.
template <class Emit>
DEVICE void attend(const u16* qkv, int group, int position, u16* keys, u16* values,
                   const float* norms, const float* turns, Emit emit) {
  int first = lane_id() * DIMS;
  Past old_keys = past_of(keys + first, position), old_values = past_of(values + first, position);
  float4 query_norm = four(norms + first), key_norm = four(norms + HEAD_DIM + first);
  Turn turn = {four(turns + first), four(turns + HEAD_DIM + first)};
  const u16* new_key = qkv + (HEADS + group) * HEAD_DIM + first;
  uint2 made = fresh8(new_key), value = fresh8(new_key + KV_HEADS * HEAD_DIM), queries[GROUP];
#pragma unroll
  for (int i = 0; i < GROUP; i++)
    queries[i] = fresh8(qkv + (group * GROUP + i) * HEAD_DIM + first);
  uint2 key = packed(positioned(unpack(made), key_norm, turn));
  add_newest(old_keys, keys + first, position, key);
  add_newest(old_values, values + first, position, value);
#pragma unroll 1
  for (int i = 0; i < GROUP; i++) {
    Part q = positioned(unpack(i ? queries[GROUP - 1] : queries[0]), query_norm, turn);
    emit((group * GROUP + i) * HEAD_DIM + first, packed(mix(q, old_keys, old_values, position)));
  }
}
