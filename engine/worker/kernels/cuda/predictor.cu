// A frame's codebooks 1-15 in one launch: a block a multiprocessor, all of them resident.
//
// A pass is one position through all layers. After it come a head's logits and the draws, a row's
// by one block. Rows are numbered from a crew's first one on, but for the keys and values.

constexpr int HEAD_COLUMNS = CODES / 8 / GRID, HEAD_STAGES = HEAD_COLUMNS * (WIDTH / SLAB);
static_assert(HEAD_STAGES <= STAGES, "a head's weights lie there");

struct Frame {
  const u8* layers;     // [LAYERS, LAYER_STAGES, GRID, STAGE]
  const u8* heads;      // [BOOKS, HEAD_STAGES, GRID, STAGE]
  const float* norms;   // [LAYERS, 2, HEAD_DIM] of queries and keys
  const float* turns;   // [POSITIONS, 2, HEAD_DIM]
  const u16* inputs;    // [BOOKS, CODES, WIDTH] embeddings as the predictor takes them
  const u16* const* embeddings;  // [BOOKS] of [CODES, WIDE]
  const u16* begin;     // [2, rows, WIDTH]: the talker's hidden state, codebook 0
  const u16* talked;    // [rows, WIDE] codebook 0 as the talker takes it
  const float* inverse_temperature;  // a column each
  const float* top_k;
  const float* top_p;
  const float* sample_mask;
  const float* uniforms;    // [rows, BOOKS]
  u64* codes;           // [rows, BOOKS]
  u16* total;           // [rows, WIDE]
  u16* x;               // [rows, WIDTH] and all below: between phases
  u16* qkv;             // [rows, QKV]
  u16* mixed;           // [rows, MIXED]
  u16* gated;           // [rows, INNER]
  u16* logits;          // [rows, CODES]
  u16* keys;            // [LAYERS, rows, KV_HEADS, POSITIONS, HEAD_DIM]
  u16* values;
  u32* barrier;         // [crews, 2]: arrivals, blocks that have left
  int rows, each;       // in all, and of a crew
  int count, knob_stride, uniform_stride;

  // This crew's.
  DEVICE u64 first() const { return own_crew() * each; }
  DEVICE int own() const { return rows - (int)first() < each ? rows - (int)first() : each; }
  DEVICE Between between() const {
    return {x + first() * WIDTH, qkv + first() * QKV, mixed + first() * MIXED,
            gated + first() * INNER, own()};
  }
};

// The weights in the order of use: the layers, then but for the first position a head. The first
// position's last layer leaves its keys and values only.
struct Runs {
  const Frame& frame;

  DEVICE int count() const { return 2 * POSITIONS; }
  DEVICE Run operator()(int number) const {
    constexpr int ALL = LAYERS * LAYER_STAGES, LAST = LAYER_STAGES - QKV_STAGES * QKV_PARTS;
    int pass = number / 2;
    u64 own = own_block(), head = (u64)(pass - 1) * HEAD_STAGES;
    if (number % 2 == 0)
      return {frame.layers + own * STAGE, pass ? ALL : ALL - LAST};
    return {frame.heads + (head * GRID + own) * STAGE, pass ? HEAD_STAGES : 0};
  }
};

DEVICE void attend_all(const Frame& frame, const Between& to, int layer, int position) {
  constexpr u64 SIZE = POSITIONS * HEAD_DIM;
  u64 before = (layer * (u64)frame.rows + frame.first()) * KV_HEADS;
  int tasks = to.rows * KV_HEADS;
  for (int task = own_block() + GRID * warp_id(); task < tasks; task += GRID * WARPS) {
    u64 row = task / KV_HEADS, at = (before + task) * SIZE;
    attend(to.qkv + row * QKV, task % KV_HEADS, position, frame.keys + at, frame.values + at,
           frame.norms + layer * 2 * HEAD_DIM, frame.turns + position * 2 * HEAD_DIM,
           [&](int dimension, uint2 pairs) {
             *(uint2*)(to.mixed + row * MIXED + dimension) = pairs;
           });
  }
}

// `row` of all.
DEVICE u32 draw_row(const State& s, const Frame& frame, u64 row, int book) {
  constexpr int EACH = CODES / WORKERS;
  u64 knob = row * frame.knob_stride, keys[EACH];
  SamplingTensors own = {frame.inverse_temperature[knob], frame.top_k[knob], frame.top_p[knob],
               frame.sample_mask[knob]};
  float lot = frame.uniforms[row * frame.uniform_stride + book];
#pragma unroll
  for (int i = 0; i < EACH; i += 2) {
    u32 id = i * WORKERS + threadIdx.x * 2;
    u32 pair = fresh4(frame.logits + row * CODES + id);
    keys[i] = key_of(low(pair), id), keys[i + 1] = key_of(high(pair), id + 1);
  }
  return choose<EACH>((u64*)s.shared, s.words(), frame.count, own, lot, keys);
}

// Draw this block's rows, and lay out the next position's input.
DEVICE void draw_rows(const State& s, const Frame& frame, int book) {
  for (u64 own = own_block(); own < frame.own(); own += GRID) {
    u64 row = frame.first() + own;
    u32 code = draw_row(s, frame, row, book);
    const u16* input = frame.inputs + ((u64)book * CODES + code) * WIDTH;
    for (int i = threadIdx.x * 8; i < WIDTH; i += WORKERS * 8)
      *(uint4*)(frame.x + row * WIDTH + i) = *(const uint4*)(input + i);
    if (threadIdx.x == 0) frame.codes[row * BOOKS + book] = code;
  }
}

DEVICE void run_passes(State s, const Frame& frame) {
  Between to = frame.between();
  for (int pass = 0; pass < POSITIONS; pass++) {
    for (int layer = 0; layer < LAYERS; layer++) {
      const u16* begin = frame.begin + ((u64)pass * frame.rows + frame.first()) * WIDTH;
      const u16* input = layer == 0 && pass < 2 ? begin : to.x;
      bool keys_only = pass == 0 && layer == LAYERS - 1;
      run_layer(s, Runs{frame}, to, input, layer ? nullptr : input, keys_only,
                [&] { attend_all(frame, to, layer, pass); });
    }
    if (pass == 0) continue;
    product<HEAD_COLUMNS, WIDTH / SLAB, true, false>(
        s.ring, Runs{frame}, s.space(), to.x, to.rows, [&](int row, int column, Pair made) {
          put_pair(frame.logits + frame.first() * CODES, CODES, HEAD_COLUMNS, row, column, made);
        });
    s.sync();
    draw_rows(s, frame, pass - 1);
    s.sync();
  }
  for (int row = own_block(); row < to.rows; row += GRID)
    add_embeddings(frame.talked, frame.embeddings, frame.codes, frame.total, frame.first() + row);
}

extern "C" __global__ void __launch_bounds__(WORKERS, 1) predict(const Frame frame) {
  SHARED(shared);
  u32* barrier = frame.barrier + 2 * own_crew();
  run_passes(begin(shared, Runs{frame}, barrier), frame);
  leave(barrier);
}
