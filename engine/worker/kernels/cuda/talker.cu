// One new position of every row through the talker, in one launch. Keys and values are those of
// engine/worker/state/kv_cache.py: a row's slot has as many as its position says, from earlier launches.

struct Pass {
  const u8* layers;     // [LAYERS, LAYER_STAGES, GRID, STAGE]
  const float* norms;   // [LAYERS, 2, HEAD_DIM] of queries and keys
  const float* turns;   // [limit, 2, HEAD_DIM]
  const u16* last;      // [WIDTH] the norm behind all layers
  const u16* input;     // [rows, WIDTH]
  const u64* index;     // [rows] slots
  const u64* position;  // [rows]
  u16* keys;            // [LAYERS, slots, KV_HEADS, limit, HEAD_DIM], as the ..._STEPs say
  u16* values;
  u16* hidden;          // [rows, WIDTH] what is made
  u16* x;               // and what lies between the phases
  u16* qkv;
  u16* mixed;
  u16* gated;
  u32* barrier;         // [2]: arrivals, blocks that have left
  int rows;
};

struct Runs {
  const Pass& pass;

  DEVICE int count() const { return 1; }
  DEVICE Run operator()(int) const {
    return {pass.layers + (u64)blockIdx.x * STAGE, LAYERS * LAYER_STAGES};
  }
};

constexpr int SPAN = POSITIONS;  // positions that a warp takes at a time
static_assert(SPAN == 16, "two lanes take a position");

// What a warp has seen of a head: its lanes' parts of the values, not yet divided by `total`.
struct Seen { Part mixed; float best, total; };

// Past positions [0, count) of a span; the newest is not there yet.
DEVICE Past span_of(const u16* kept, int count) {
  Past past = {};
#pragma unroll
  for (int t = 0; t < SPAN; t++)
    if (t < count) past.at[t] = *(const uint2*)(kept + t * KEPT_STEP);
  return past;
}

DEVICE void see(Seen& seen, const Part& q, const Past& keys, const Past& values, int count) {
  float scores[SPAN];
#pragma unroll
  for (int t = 0; t < SPAN; t++) scores[t] = dot(q, unpack(keys.at[t]));
  float score = scattered_sums<SPAN>(scores, 16) * (1.f / HEAD_DIM_ROOT);
  bool there = lane_id() / 2 < count;
  float best = fmaxf(seen.best, warp_most(there ? score : NEVER));
  float share = there ? quick_exp(score - best) : 0.f, fade = quick_exp(seen.best - best);
  seen.best = best;
  seen.total = seen.total * fade + warp_sum(share) * 0.5f;
#pragma unroll
  for (int i = 0; i < DIMS; i++) seen.mixed.x[i] *= fade;
#pragma unroll
  for (int t = 0; t < SPAN; t++) {
    float own = from_lane(share, t * 2);
    Part value = unpack(values.at[t]);
#pragma unroll
    for (int i = 0; i < DIMS; i++) seen.mixed.x[i] += own * value.x[i];
  }
}

// What the warps have seen, [WARPS, GROUP, HEAD_DIM], and their best and total, [WARPS, GROUP, 2].
DEVICE void put_seen(float* space, const Seen (&seen)[GROUP]) {
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    int own = warp_id() * GROUP + i;
    const float (&x)[DIMS] = seen[i].mixed.x;
    ((float4*)space)[own * 32 + lane_id()] = make_float4(x[0], x[1], x[2], x[3]);
    float* known = space + (WARPS * HEAD_DIM * GROUP) + own * 2;
    if (lane_id() == 0) known[0] = seen[i].best, known[1] = seen[i].total;
  }
}
// All of that together -> mixed.
DEVICE void join(const float* space, u16* mixed) {
  const float* known = space + WARPS * GROUP * HEAD_DIM;
  for (int i = threadIdx.x * 2; i < GROUP * HEAD_DIM; i += WORKERS * 2) {
    float best = NEVER, total = 0.f, even = 0.f, odd = 0.f;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
      best = fmaxf(best, known[(w * GROUP + i / HEAD_DIM) * 2]);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      const float* theirs = known + (w * GROUP + i / HEAD_DIM) * 2;
      const float* part = space + w * GROUP * HEAD_DIM + i;
      float weight = quick_exp(theirs[0] - best);
      total += theirs[1] * weight, even += part[0] * weight, odd += part[1] * weight;
    }
    *(u32*)(mixed + i) = pack(quick_ratio(even, total), quick_ratio(odd, total));
  }
}

// Where a row's group of heads lies, for one lane.
struct Place {
  u16 *keys, *values;                 // [limit, HEAD_DIM], KEPT_STEP apart
  const u16 *queries, *key, *value;   // new ones: GROUP heads, one, one
  const float* norms;                 // [2, HEAD_DIM]
  Turn turn;
  int at;                             // the new position
};

DEVICE Place place_of(const Pass& pass, int layer, u64 row, u64 group) {
  u64 kept = layer * (u64)LAYER_STEP + pass.index[row] * (u64)SLOT_STEP + group * (u64)HEAD_STEP;
  u64 at = pass.position[row];
  int lane = lane_id() * DIMS;
  const float* turns = pass.turns + at * 2 * HEAD_DIM + lane;
  const u16 *qkv = pass.qkv + row * QKV + lane, *key = qkv + (HEADS + group) * HEAD_DIM;
  return {pass.keys + kept + lane, pass.values + kept + lane,
          qkv + group * GROUP * HEAD_DIM, key, key + KV_HEADS * HEAD_DIM,
          pass.norms + layer * 2 * HEAD_DIM + lane,
          {four(turns), four(turns + HEAD_DIM)}, (int)at};
}

// The span from position `first` on, by all of the group's heads. The newest is kept on the way.
DEVICE void see_span(const Place& to, int first, const Part (&queries)[GROUP],
                     Seen (&seen)[GROUP]) {
  int old = to.at - first;
  u16 *keys = to.keys + (u64)first * KEPT_STEP, *values = to.values + (u64)first * KEPT_STEP;
  Past past_keys = span_of(keys, old), past_values = span_of(values, old);
  if (old < SPAN) {
    Part made = unpack(fresh8(to.key));
    add_newest(past_keys, keys, old, packed(positioned(made, four(to.norms + HEAD_DIM), to.turn)));
    add_newest(past_values, values, old, fresh8(to.value));
  }
#pragma unroll
  for (int i = 0; i < GROUP; i++) see(seen[i], queries[i], past_keys, past_values, old + 1);
}

// One row's group of heads by a block: its warps take spans in turn, then join what they saw.
DEVICE void attend_group(const State& s, const Pass& pass, int layer, int task) {
  u64 row = task / KV_HEADS, group = task % KV_HEADS;
  Place to = place_of(pass, layer, row, group);
  Part queries[GROUP];
  Seen seen[GROUP];
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    queries[i] = positioned(unpack(fresh8(to.queries + i * HEAD_DIM)), four(to.norms), to.turn);
    seen[i] = {{}, NEVER, 0.f};
  }
  for (int first = warp_id() * SPAN; first <= to.at; first += WARPS * SPAN)
    see_span(to, first, queries, seen);
  put_seen(s.space(), seen);
  sync_workers();
  join(s.space(), pass.mixed + row * MIXED + group * GROUP * HEAD_DIM);
  sync_workers();
}

// x over its root mean square, times the last norm's weight.
DEVICE void norm_row(const State& s, const Pass& pass, u64 row) {
  constexpr int EACH = WIDTH / WORKERS / 2;
  u32 own[EACH];
  float squares = 0.f, whole = 0.f;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    own[i] = fresh4(pass.x + row * WIDTH + (i * WORKERS + threadIdx.x) * 2);
    squares += square_of(own[i]);
  }
  squares = warp_sum(squares);
  if (lane_id() == 0) s.space()[warp_id()] = squares;
  sync_workers();
  for (int w = 0; w < WARPS; w++) whole += s.space()[w];
  float scale = quick_root(whole * (1.f / WIDTH) + EPS);
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    int at = (i * WORKERS + threadIdx.x) * 2;
    u32 weight = *(const u32*)(pass.last + at);
    *(u32*)(pass.hidden + row * WIDTH + at) =
        pack(low(own[i]) * scale * low(weight), high(own[i]) * scale * high(weight));
  }
  sync_workers();
}

DEVICE void run_talker(State s, const Pass& pass) {
  Between to = {pass.x, pass.qkv, pass.mixed, pass.gated, pass.rows};
  for (int layer = 0; layer < LAYERS; layer++) {
    const u16* before = layer ? nullptr : pass.input;
    run_layer(s, Runs{pass}, to, layer ? pass.x : pass.input, before, false, [&] {
      for (int task = blockIdx.x; task < pass.rows * KV_HEADS; task += GRID)
        attend_group(s, pass, layer, task);
    });
  }
  for (int row = blockIdx.x; row < pass.rows; row += GRID) norm_row(s, pass, row);
}

extern "C" __global__ void __launch_bounds__(WORKERS, 1) talk(const Pass pass) {
  SHARED(shared);
  run_talker(begin(shared, Runs{pass}, pass.barrier), pass);
  leave(pass.barrier);
}
