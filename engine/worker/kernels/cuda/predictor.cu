// A frame's codebooks 1-15 in one launch of resident blocks, one per multiprocessor.
//
// A pass is one position through all layers. After it come a head's logits and the draws, one block
// per row. Rows are numbered from the partition's first one, but in the keys and values.

constexpr int HEAD_COLUMNS = CODES / 8 / GRID, HEAD_STAGES = HEAD_COLUMNS * (WIDTH / SLAB);
static_assert(HEAD_STAGES <= STAGES, "a head's weights fit");

struct PredictorArguments {
  const u8* layers;     // [LAYERS, LAYER_STAGES, GRID, STAGE]
  const u8* heads;      // [BOOKS, HEAD_STAGES, GRID, STAGE]
  const float* norms;   // [LAYERS, 2, HEAD_DIM] of queries and keys
  const float* rotary;   // [POSITIONS, 2, HEAD_DIM]
  const u16* inputs;    // [BOOKS, CODES, WIDTH] embeddings as the predictor's inputs
  const u16* const* embeddings;  // [BOOKS] of [CODES, WIDE]
  const u16* begin;     // [2, rows, WIDTH]: the talker's hidden state, codebook 0
  const u16* first;    // [rows, WIDE] codebook 0's embedding in the talker's table
  const float* inverse_temperature;  // one column each
  const float* top_k;
  const float* top_p;
  const float* sample_mask;
  const float* uniforms;    // [rows, BOOKS]
  u64* codes;           // [rows, BOOKS]
  u16* total;           // [rows, WIDE]
  u16* x;               // [rows, WIDTH], and all below: scratch
  u16* qkv;             // [rows, QKV]
  u16* attended;        // [rows, ATTENDED]
  u16* gated;           // [rows, INNER]
  u16* logits;          // [rows, CODES]
  u16* keys;            // [LAYERS, rows, KV_HEADS, POSITIONS, HEAD_DIM]
  u16* values;
  u32* barrier;         // [partitions, 2]: arrivals, departures
  int rows, partition_rows;  // of the launch, and of each partition
  int count, setting_stride, uniform_stride;

  // This partition's rows.
  DEVICE u64 first_row() const { return partition_id() * partition_rows; }
  DEVICE int row_count() const {
    int left = rows - (int)first_row();
    return left < partition_rows ? left : partition_rows;
  }
  DEVICE Activations activations() const {
    return {x + first_row() * WIDTH, qkv + first_row() * QKV, attended + first_row() * ATTENDED,
            gated + first_row() * INNER, row_count()};
  }
};

// The weights in the order of use: the layers and, except for the first position, a head. In the
// first position's last layer only keys and values are needed.
struct Runs {
  const PredictorArguments& args;

  DEVICE int count() const { return 2 * POSITIONS; }
  DEVICE Run operator()(int number) const {
    constexpr int ALL = LAYERS * LAYER_STAGES, LAST = LAYER_STAGES - QKV_STAGES * QKV_PARTS;
    int pass = number / 2;
    u64 own = block_id(), head = (u64)(pass - 1) * HEAD_STAGES;
    if (number % 2 == 0)
      return {args.layers + own * STAGE, pass ? ALL : ALL - LAST};
    return {args.heads + (head * GRID + own) * STAGE, pass ? HEAD_STAGES : 0};
  }
};

DEVICE void attend_all(const PredictorArguments& args, const Activations& to, int layer, int position) {
  constexpr u64 SIZE = POSITIONS * HEAD_DIM;
  u64 before = (layer * (u64)args.rows + args.first_row()) * KV_HEADS;
  int tasks = to.rows * KV_HEADS;
  for (int task = block_id() + GRID * warp_id(); task < tasks; task += GRID * WARPS) {
    u64 row = task / KV_HEADS, at = (before + task) * SIZE;
    attend(to.qkv + row * QKV, task % KV_HEADS, position, args.keys + at, args.values + at,
           args.norms + layer * 2 * HEAD_DIM, args.rotary + position * 2 * HEAD_DIM,
           [&](int dimension, uint2 pairs) {
             *(uint2*)(to.attended + row * ATTENDED + dimension) = pairs;
           });
  }
}

// `row` counts from the launch's first.
DEVICE u32 draw_row(const State& s, const PredictorArguments& args, u64 row, int book) {
  constexpr int EACH = CODES / WORKERS;
  u64 at_row = row * args.setting_stride, keys[EACH];
  SamplingTensors sampling = {args.inverse_temperature[at_row], args.top_k[at_row], args.top_p[at_row],
               args.sample_mask[at_row]};
  float uniform = args.uniforms[row * args.uniform_stride + book];
#pragma unroll
  for (int i = 0; i < EACH; i += 2) {
    u32 id = i * WORKERS + threadIdx.x * 2;
    u32 pair = fresh4(args.logits + row * CODES + id);
    keys[i] = key_of(low(pair), id), keys[i + 1] = key_of(high(pair), id + 1);
  }
  return choose<EACH>((u64*)s.shared, s.words(), args.count, sampling, uniform, keys);
}

// Sample this block's rows, and write the next position's input.
DEVICE void draw_rows(const State& s, const PredictorArguments& args, int book) {
  for (u64 own = block_id(); own < args.row_count(); own += GRID) {
    u64 row = args.first_row() + own;
    u32 code = draw_row(s, args, row, book);
    const u16* input = args.inputs + ((u64)book * CODES + code) * WIDTH;
    for (int i = threadIdx.x * 8; i < WIDTH; i += WORKERS * 8)
      *(uint4*)(args.x + row * WIDTH + i) = *(const uint4*)(input + i);
    if (threadIdx.x == 0) args.codes[row * BOOKS + book] = code;
  }
}

DEVICE void run_passes(State s, const PredictorArguments& args) {
  Activations to = args.activations();
  for (int pass = 0; pass < POSITIONS; pass++) {
    for (int layer = 0; layer < LAYERS; layer++) {
      const u16* begin = args.begin + ((u64)pass * args.rows + args.first_row()) * WIDTH;
      const u16* input = layer == 0 && pass < 2 ? begin : to.x;
      bool keys_only = pass == 0 && layer == LAYERS - 1;
      run_layer(s, Runs{args}, to, input, layer ? nullptr : input, keys_only,
                [&] { attend_all(args, to, layer, pass); });
    }
    if (pass == 0) continue;
    product<HEAD_COLUMNS, WIDTH / SLAB, true, false>(
        s.ring, Runs{args}, s.space(), to.x, to.rows, [&](int row, int column, Pair result) {
          put_pair(args.logits + args.first_row() * CODES, CODES, HEAD_COLUMNS, row, column, result);
        });
    s.sync();
    draw_rows(s, args, pass - 1);
    s.sync();
  }
  for (int row = block_id(); row < to.rows; row += GRID)
    add_embeddings(args.first, args.embeddings, args.codes, args.total, args.first_row() + row);
}

extern "C" __global__ void __launch_bounds__(WORKERS, 1) predict(const PredictorArguments args) {
  SHARED(shared);
  u32* barrier = args.barrier + 2 * partition_id();
  run_passes(begin(shared, Runs{args}, barrier), args);
  leave(barrier);
}
