// One new position of every row through the talker, in one launch. Keys and values are those of
// engine/worker/state/kv_cache.py: a row's slot holds as many as its position, from earlier launches.

constexpr u64 POSTED_SIZE = LAYERS * POSTED_LAYER;  // numbers of a row

struct TalkerArguments {
  const u8* layers;     // [LAYERS, LAYER_STAGES, GRID, STAGE]
  const float* norms;   // [LAYERS, 2, HEAD_DIM] of queries and keys
  const float* rotary;  // [limit, 2, HEAD_DIM]
  const u16* last_norm; // [WIDTH] of the norm behind all layers
  const u16* input;     // [rows, WIDTH]
  const u64* index;     // [rows] slots
  const u64* position;  // [rows]
  u16* keys;            // [LAYERS, slots, KV_HEADS, limit, HEAD_DIM], strides as in ..._STRIDE
  u16* values;
  u16* hidden;          // [rows, WIDTH] the result
  u16* x;               // scratch, as the three below
  u16* qkv;
  u16* attended;
  u16* gated;
  u16* posted;          // [2, POSTED_ROWS, POSTED_SIZE]
  u32* launches;        // [3], see begin_posted
  u32* barrier;         // [2]: arrivals, departures
  int rows;
};

struct Runs {
  const TalkerArguments& args;

  DEVICE int count() const { return 1; }
  DEVICE Run operator()(int) const {
    return {args.layers + (u64)blockIdx.x * STAGE, LAYERS * LAYER_STAGES};
  }
};

constexpr int SPAN = POSITIONS;  // positions that a warp takes at a time
static_assert(SPAN == 16, "two lanes take a position");

// A warp's part of a head's attention: its lanes' sums of values, not yet divided by `total`.
struct Partial { Part attended; float best, total; };

// Earlier positions [0, count) of a span, without the newest.
DEVICE Past load_span(const u16* offset, int count) {
  Past past = {};
#pragma unroll
  for (int t = 0; t < SPAN; t++)
    if (t < count) past.at[t] = *(const uint2*)(offset + t * KV_STRIDE);
  return past;
}

DEVICE void accumulate(Partial& partial, const Part& q, const Past& keys, const Past& values, int count) {
  float scores[SPAN];
#pragma unroll
  for (int t = 0; t < SPAN; t++) scores[t] = dot(q, unpack(keys.at[t]));
  float score = scattered_sums<SPAN>(scores, 16) * (1.f / HEAD_DIM_ROOT);
  bool there = lane_id() / 2 < count;
  float best = fmaxf(partial.best, warp_most(there ? score : NEVER));
  float share = there ? quick_exp(score - best) : 0.f, fade = quick_exp(partial.best - best);
  partial.best = best;
  partial.total = partial.total * fade + warp_sum(share) * 0.5f;
#pragma unroll
  for (int i = 0; i < DIMS; i++) partial.attended.x[i] *= fade;
#pragma unroll
  for (int t = 0; t < SPAN; t++) {
    float own = from_lane(share, t * 2);
    Part value = unpack(values.at[t]);
#pragma unroll
    for (int i = 0; i < DIMS; i++) partial.attended.x[i] += own * value.x[i];
  }
}

// The warps' parts, [WARPS, GROUP, HEAD_DIM], with best and total of each, [WARPS, GROUP, 2].
DEVICE void store_partials(float* space, const Partial (&partial)[GROUP]) {
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    int own = warp_id() * GROUP + i;
    const float (&x)[DIMS] = partial[i].attended.x;
    ((float4*)space)[own * 32 + lane_id()] = make_float4(x[0], x[1], x[2], x[3]);
    float* stats = space + (WARPS * HEAD_DIM * GROUP) + own * 2;
    if (lane_id() == 0) stats[0] = partial[i].best, stats[1] = partial[i].total;
  }
}
// Combine the warps' parts -> attended.
DEVICE void combine(const float* space, u16* attended) {
  const float* stats = space + WARPS * GROUP * HEAD_DIM;
  for (int i = threadIdx.x * 2; i < GROUP * HEAD_DIM; i += WORKERS * 2) {
    float best = NEVER, total = 0.f, even = 0.f, odd = 0.f;
#pragma unroll
    for (int w = 0; w < WARPS; w++)
      best = fmaxf(best, stats[(w * GROUP + i / HEAD_DIM) * 2]);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      const float* stat = stats + (w * GROUP + i / HEAD_DIM) * 2;
      const float* part = space + w * GROUP * HEAD_DIM + i;
      float weight = quick_exp(stat[0] - best);
      total += stat[1] * weight, even += part[0] * weight, odd += part[1] * weight;
    }
    write4(attended + i, pack(quick_ratio(even, total), quick_ratio(odd, total)));
  }
}

// Addresses of a row's group of heads, for one lane.
struct HeadGroup {
  u16 *keys, *values;                 // [limit, HEAD_DIM], KV_STRIDE apart
  Taken taken;                        // new queries, key and value
  const float* norms;                 // [2, HEAD_DIM]
  Rotary angles;
  int at;                             // the new position
};

// qkv [rows, QKV]
DEVICE HeadGroup locate(const TalkerArguments& args, const u16* qkv, int layer, u64 row, u64 group) {
  u64 offset = layer * (u64)LAYER_STRIDE + args.index[row] * (u64)SLOT_STRIDE + group * (u64)HEAD_STRIDE;
  u64 at = args.position[row];
  int lane = lane_id() * DIMS;
  const float* rotary = args.rotary + at * 2 * HEAD_DIM + lane;
  return {args.keys + offset + lane, args.values + offset + lane, take(qkv + row * QKV, group, lane),
          args.norms + layer * 2 * HEAD_DIM + lane,
          {four(rotary), four(rotary + HEAD_DIM)}, (int)at};
}

// All of the group's heads over the span from position `first` on. Writes the newest keys and
// values to the cache.
DEVICE void attend_span(const HeadGroup& to, int first, const Part (&queries)[GROUP],
                     Partial (&partial)[GROUP]) {
  int old = to.at - first;
  u16 *keys = to.keys + (u64)first * KV_STRIDE, *values = to.values + (u64)first * KV_STRIDE;
  Past past_keys = load_span(keys, old), past_values = load_span(values, old);
  if (old < SPAN) {
    Part key = positioned(unpack(to.taken.key), four(to.norms + HEAD_DIM), to.angles);
    add_newest(past_keys, keys, old, packed(key));
    add_newest(past_values, values, old, to.taken.value);
  }
#pragma unroll
  for (int i = 0; i < GROUP; i++) accumulate(partial[i], queries[i], past_keys, past_values, old + 1);
}

// One row's group of heads by one block: its warps take spans in turn, then combine their parts.
DEVICE void attend_group(const State& s, const TalkerArguments& args, const Activations& with, int layer, int task) {
  u64 row = task / KV_HEADS, group = task % KV_HEADS;
  HeadGroup to = locate(args, with.qkv, layer, row, group);
  Part queries[GROUP];
  Partial partial[GROUP];
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    queries[i] = positioned(unpack(to.taken.queries[i]), four(to.norms), to.angles);
    partial[i] = {{}, NEVER, 0.f};
  }
  for (int first = warp_id() * SPAN; first <= to.at; first += WARPS * SPAN)
    attend_span(to, first, queries, partial);
  store_partials(s.space(), partial);
  sync_workers();
  combine(s.space(), with.attended + row * ATTENDED + group * GROUP * HEAD_DIM);
  sync_workers();
}

// x over its root mean square, times the last norm's weight.
DEVICE void norm_row(const State& s, const TalkerArguments& args, const u16* x, u64 row) {
  constexpr int EACH = WIDTH / WORKERS / 2;
  u32 own[EACH];
  float squares = 0.f, whole = 0.f;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const u16* at = x + row * WIDTH + (i * WORKERS + threadIdx.x) * 2;
    own[i] = fresh4(at);
    for (u32 looks = 0; POSTED && own[i] == NOTHING; looks++) look_again(looks), own[i] = fresh4(at);
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
    u32 weight = *(const u32*)(args.last_norm + at);
    *(u32*)(args.hidden + row * WIDTH + at) =
        pack(low(own[i]) * scale * low(weight), high(own[i]) * scale * high(weight));
  }
  sync_workers();
}

// posted: this launch's half.
DEVICE void run_talker(State s, const TalkerArguments& args, u16* posted) {
  Activations to = {args.x, args.x, args.qkv, args.attended, args.gated, args.rows};
  const u16* input = args.input;
  for (int layer = 0; layer < LAYERS; layer++) {
    if (POSTED) to = activations_at(posted, layer, args.rows);
    run_layer(s, Runs{args}, to, input, layer ? nullptr : input, POSTED && layer, false, [&] {
      for (int task = blockIdx.x; task < args.rows * KV_HEADS; task += GRID)
        attend_group(s, args, to, layer, task);
    });
    input = to.x;
  }
  for (int row = blockIdx.x; row < args.rows; row += GRID) norm_row(s, args, input, row);
}

extern "C" __global__ void __launch_bounds__(WORKERS, 1) talk(const TalkerArguments args) {
  SHARED(shared);
  State state = begin(shared, Runs{args}, args.barrier);
  run_talker(state, args, POSTED ? begin_posted<POSTED_SIZE>(args.posted, args.launches) : nullptr);
  leave(args.barrier, args.launches, args.rows);
}
