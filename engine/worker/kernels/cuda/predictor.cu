// A frame's codebooks 1-15 in one launch of resident blocks, one per multiprocessor.
//
// A pass is one position through all layers. After it come a head's logits and the draws, one block
// per row. Rows are numbered from the partition's first one, but in the keys and values.

constexpr int HEAD_COLUMNS = CODES / 8 / GRID, HEAD_STAGES = HEAD_COLUMNS * (WIDTH / SLAB);
static_assert(HEAD_STAGES <= STAGES, "a head's weights fit");

// Numbers of a row that are posted in a launch: all passes' layers, then logits and the next inputs.
constexpr u64 POSTED_SIZE = POSITIONS * (LAYERS * POSTED_LAYER + CODES + WIDTH);

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
  u16* posted;          // [2, POSTED_ROWS, POSTED_SIZE]
  u32* launches;        // [3], see begin_posted
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
    u16* own = x + first_row() * WIDTH;
    return {own, own, qkv + first_row() * QKV, attended + first_row() * ATTENDED,
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
             u16* own = to.attended + row * ATTENDED + dimension;
             if (POSTED) post8(own, pairs);
             else *(uint2*)own = pairs;
           });
  }
}

// `row` counts from the launch's first. logits [CODES] of the row.
DEVICE u32 draw_row(const State& s, const PredictorArguments& args, const u16* logits, u64 row, int book) {
  constexpr int EACH = CODES / WORKERS;
  u64 at_row = row * args.setting_stride, keys[EACH];
  SamplingTensors sampling = {args.inverse_temperature[at_row], args.top_k[at_row], args.top_p[at_row],
               args.sample_mask[at_row]};
  float uniform = args.uniforms[row * args.uniform_stride + book];
#pragma unroll
  for (int i = 0; i < EACH; i += 2) {
    u32 id = i * WORKERS + threadIdx.x * 2;
    u32 pair = fresh4(logits + id);
    for (u32 looks = 0; POSTED && pair == NOTHING; looks++) look_again(looks), pair = fresh4(logits + id);
    keys[i] = key_of(low(pair), id), keys[i + 1] = key_of(high(pair), id + 1);
  }
  return choose<EACH>((u64*)s.shared, s.words(), args.count, sampling, uniform, keys);
}

// Sample this block's rows from logits [rows, CODES], and write the next position's input to x.
DEVICE void draw_rows(const State& s, const PredictorArguments& args, const u16* logits, u16* x, int book) {
  for (u64 own = block_id(); own < args.row_count(); own += GRID) {
    u64 row = args.first_row() + own;
    u32 code = draw_row(s, args, logits + row * CODES, row, book);
    const u16* input = args.inputs + ((u64)book * CODES + code) * WIDTH;
    for (int i = threadIdx.x * 8; i < WIDTH; i += WORKERS * 8)
      if (POSTED) post16(x + row * WIDTH + i, *(const uint4*)(input + i));
      else *(uint4*)(x + row * WIDTH + i) = *(const uint4*)(input + i);
    if (threadIdx.x == 0) args.codes[row * BOOKS + book] = code;
  }
}

// posted: this launch's half.
DEVICE void run_passes(State s, const PredictorArguments& args, u16* posted) {
  Activations to = args.activations();
  const u16 *own = to.x, *drawn = to.x;  // the last layer's x, and what was drawn
  for (int pass = 0; pass < POSITIONS; pass++) {
    for (int layer = 0; layer < LAYERS; layer++) {
      if (POSTED) to = activations_at(posted, pass * LAYERS + layer, args.rows);
      const u16* begin = args.begin + ((u64)pass * args.rows + args.first_row()) * WIDTH;
      bool given = layer == 0 && pass < 2, keys_only = pass == 0 && layer == LAYERS - 1;
      const u16* input = given ? begin : layer ? own : drawn;
      run_layer(s, Runs{args}, to, input, layer ? nullptr : input, POSTED && !given, keys_only,
                [&] { attend_all(args, to, layer, pass); });
      own = to.x;
    }
    if (pass == 0) continue;
    u16 *logits = args.logits, *next = args.x;
    if (POSTED) {
      logits = posted + args.rows * (POSITIONS * LAYERS * POSTED_LAYER + pass * (u64)(CODES + WIDTH));
      next = logits + args.rows * CODES;
      drawn = next;
    }
    product<HEAD_COLUMNS, WIDTH / SLAB, true, false>(
        s.ring, Runs{args}, s.space(), to.x, POSTED, to.rows, [&](int row, int column, Pair result) {
          put_pair(logits + args.first_row() * CODES, CODES, HEAD_COLUMNS, row, column, result);
          if (POSTED) put_pair(args.logits, CODES, HEAD_COLUMNS, row, column, result);
        });
    s.sync();
    draw_rows(s, args, logits, next, pass - 1);
    s.sync();
  }
  for (int row = block_id(); row < to.rows; row += GRID)
    add_embeddings(args.first, args.embeddings, args.codes, args.total, args.first_row() + row);
}

extern "C" __global__ void __launch_bounds__(WORKERS, 1) predict(const PredictorArguments args) {
  SHARED(shared);
  u32* barrier = args.barrier + 2 * partition_id();
  State state = begin(shared, Runs{args}, barrier);
  run_passes(state, args, POSTED ? begin_posted<POSTED_SIZE>(args.posted, args.launches) : nullptr);
  leave(barrier, args.launches, args.rows);
}
