// A frame's codebooks 1-15 in one launch: a block a multiprocessor, all of them resident.
//
// A pass is one position through all layers. After it come a head's logits and the draws, a row's
// by one block.

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
  const u16* first;     // [rows, WIDE] codebook 0 as the talker takes it
  const float* inverse_temperature;  // a column each
  const float* top_k;
  const float* top_p;
  const float* luck;
  const float* lots;    // [rows, BOOKS]
  u64* codes;           // [rows, BOOKS]
  u16* total;           // [rows, WIDE]
  u16* x;               // [rows, WIDTH] and all below: between phases
  u16* qkv;             // [rows, QKV]
  u16* mixed;           // [rows, MIXED]
  u16* gated;           // [rows, INNER]
  u16* logits;          // [rows, CODES]
  u16* keys;            // [LAYERS, rows, KV_HEADS, POSITIONS, HEAD_DIM]
  u16* values;
  u32* barrier;         // [2]: arrivals, blocks that have left
  int rows, count, knob_stride, lot_stride;
};

// The weights in the order of use: the layers, then but for the first position a head. The first
// position's last layer leaves its keys and values only.
struct Runs {
  const Frame& frame;

  DEVICE int count() const { return 2 * POSITIONS; }
  DEVICE Run operator()(int number) const {
    constexpr int ALL = LAYERS * LAYER_STAGES, LAST = LAYER_STAGES - QKV_STAGES * QKV_PARTS;
    int pass = number / 2;
    u64 own = blockIdx.x, head = (u64)(pass - 1) * HEAD_STAGES;
    if (number % 2 == 0)
      return {frame.layers + own * STAGE, pass ? ALL : ALL - LAST};
    return {frame.heads + (head * GRID + own) * STAGE, pass ? HEAD_STAGES : 0};
  }
};

DEVICE void attend_all(const Frame& frame, int layer, int position) {
  constexpr u64 SIZE = POSITIONS * HEAD_DIM;
  int tasks = frame.rows * KV_HEADS;
  for (int task = blockIdx.x + GRID * warp_id(); task < tasks; task += GRID * WARPS) {
    u64 row = task / KV_HEADS, at = ((u64)layer * tasks + task) * SIZE;
    attend(frame.qkv + row * QKV, task % KV_HEADS, position, frame.keys + at, frame.values + at,
           frame.norms + layer * 2 * HEAD_DIM, frame.turns + position * 2 * HEAD_DIM,
           [&](int dimension, uint2 pairs) {
             *(uint2*)(frame.mixed + row * MIXED + dimension) = pairs;
           });
  }
}

DEVICE u32 draw_row(const State& s, const Frame& frame, int row, int book) {
  constexpr int EACH = CODES / WORKERS;
  u64 knob = (u64)row * frame.knob_stride, keys[EACH];
  Knobs own = {frame.inverse_temperature[knob], frame.top_k[knob], frame.top_p[knob],
               frame.luck[knob]};
  float lot = frame.lots[(u64)row * frame.lot_stride + book];
#pragma unroll
  for (int i = 0; i < EACH; i += 2) {
    u32 id = i * WORKERS + threadIdx.x * 2;
    u32 pair = fresh4(frame.logits + (u64)row * CODES + id);
    keys[i] = key_of(low(pair), id), keys[i + 1] = key_of(high(pair), id + 1);
  }
  return choose<EACH>((u64*)s.shared, s.words(), frame.count, own, lot, keys);
}

// Draw this block's rows, and lay out the next position's input.
DEVICE void draw_rows(const State& s, const Frame& frame, int book) {
  for (int row = blockIdx.x; row < frame.rows; row += GRID) {
    u32 code = draw_row(s, frame, row, book);
    const u16* input = frame.inputs + ((u64)book * CODES + code) * WIDTH;
    for (int i = threadIdx.x * 8; i < WIDTH; i += WORKERS * 8)
      *(uint4*)(frame.x + (u64)row * WIDTH + i) = *(const uint4*)(input + i);
    if (threadIdx.x == 0) frame.codes[(u64)row * BOOKS + book] = code;
  }
}

DEVICE void run_passes(State s, const Frame& frame) {
  Between to = {frame.x, frame.qkv, frame.mixed, frame.gated, frame.rows};
  for (int pass = 0; pass < POSITIONS; pass++) {
    for (int layer = 0; layer < LAYERS; layer++) {
      const u16* begin = frame.begin + (u64)pass * frame.rows * WIDTH;
      const u16* input = layer == 0 && pass < 2 ? begin : frame.x;
      bool keys_only = pass == 0 && layer == LAYERS - 1;
      run_layer(s, Runs{frame}, to, input, layer ? nullptr : input, keys_only,
                [&] { attend_all(frame, layer, pass); });
    }
    if (pass == 0) continue;
    product<HEAD_COLUMNS, WIDTH / SLAB, true, false>(
        s.ring, Runs{frame}, s.space(), frame.x, frame.rows, [&](int row, int column, Pair made) {
          put_pair(frame.logits, CODES, HEAD_COLUMNS, row, column, made);
        });
    s.sync();
    draw_rows(s, frame, pass - 1);
    s.sync();
  }
  for (int row = blockIdx.x; row < frame.rows; row += GRID)
    add_embeddings(frame.first, frame.embeddings, frame.codes, frame.total, row);
}

extern "C" __global__ void __launch_bounds__(WORKERS, 1) predict(const Frame frame) {
  SHARED(shared);
  run_passes(begin(shared, Runs{frame}, frame.barrier), frame);
  leave(frame.barrier);
}
