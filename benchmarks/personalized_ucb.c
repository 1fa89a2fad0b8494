/* Personalized UCBRank on the single-look problem, specialised by hand: the limit to measure against.
 *
 * N, M and K are compile-time constants (-DN=3 -DM=20 -DK=4), so every inner loop is unrolled, and the
 * generator is inlined. It makes the same choices as a full recomputation of the paper's Algorithm 3:
 * a round of type i changes K displays, hence K rows of v-bar and the K entries of rho-hat_i; the shown
 * items stay the top K until the bound below says that another item may have overtaken them. Drawing one
 * uniform number for look and click, and comparing indices without dividing, make this loop slower (the
 * generator costs nothing here, and the divisions are done four at a time).
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

static uint64_t state[4];
static inline uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
static inline double uniform(void) { /* xoshiro256+ */
    uint64_t result = state[0] + state[3], t = state[1] << 17;
    state[2] ^= state[0]; state[3] ^= state[1]; state[1] ^= state[2]; state[0] ^= state[3];
    state[2] ^= t; state[3] = rotl(state[3], 45);
    return (double)(result >> 11) * 0x1.0p-53;
}
static void seed_state(uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        state[i] = z ^ (z >> 31);
    }
}

typedef struct {
    double displays[K][M], rewards[K][M], reward_totals[M];
    double ratios[M][K], scales[M];       /* S/T, and 1 / sum over positions of S/T */
    double ratio_sums[K], preferences[K]; /* sum over items of v-bar, and rho-hat */
    double reference_inverse[K], challenger, reference_bonus;
    int leaders[K], positions[K];
} Type;
static Type types[N];

static void ratio_row(Type *type, int item) {
    double sum = 0;
    for (int k = 0; k < K; k++) { type->ratios[item][k] = type->rewards[k][item] / type->displays[k][item]; sum += type->ratios[item][k]; }
    type->scales[item] = 1 / sum;
}
static void rebuild(Type *type) {
    for (int k = 0; k < K; k++) type->ratio_sums[k] = 0;
    for (int j = 0; j < M; j++) {
        ratio_row(type, j);
        for (int k = 0; k < K; k++) type->ratio_sums[k] += type->ratios[j][k] * type->scales[j];
    }
    for (int k = 0; k < K; k++) type->preferences[k] = type->ratio_sums[k] * (1.0 / M);
}
static void scan(Type *type, double bonus) {
    double index[M];
    rebuild(type);
    for (int j = 0; j < M; j++) index[j] = 0;
    for (int k = 0; k < K; k++) for (int j = 0; j < M; j++) index[j] += type->displays[k][j] * type->preferences[k];
    for (int j = 0; j < M; j++) index[j] = (type->reward_totals[j] + bonus) / index[j];
    for (int a = 0; a < K; a++) {
        int best = 0;
        for (int j = 1; j < M; j++) if (index[j] > index[best]) best = j;
        type->leaders[a] = best; index[best] = -1;
    }
    double challenger = 0;
    for (int j = 0; j < M; j++) if (index[j] > challenger) challenger = index[j];
    type->challenger = challenger; type->reference_bonus = bonus;
    for (int k = 0; k < K; k++) type->reference_inverse[k] = 1 / type->preferences[k];
}
static void choose(Type *type, double bonus, int *ranking) {
    double index[K], shrink = 1e300, lowest = 1e300;
    for (int k = 0; k < K; k++) { double r = type->preferences[k] * type->reference_inverse[k]; if (r < shrink) shrink = r; }
    for (int a = 0; a < K; a++) {
        int j = type->leaders[a]; double exposure = 0;
        for (int k = 0; k < K; k++) exposure += type->displays[k][j] * type->preferences[k];
        index[a] = (type->reward_totals[j] + bonus) / exposure;
        if (index[a] < lowest) lowest = index[a];
    }
    if (lowest * shrink * type->reference_bonus * (1 - 1e-9) > type->challenger * bonus) {
        for (int a = 1; a < K; a++)
            for (int b = a; b > 0 && index[b] > index[b - 1]; b--) {
                double x = index[b]; index[b] = index[b - 1]; index[b - 1] = x;
                int j = type->leaders[b]; type->leaders[b] = type->leaders[b - 1]; type->leaders[b - 1] = j;
            }
    } else scan(type, bonus);
    for (int a = 1; a < K; a++)
        for (int b = a; b > 0 && type->preferences[type->positions[b]] > type->preferences[type->positions[b - 1]]; b--) {
            int k = type->positions[b]; type->positions[b] = type->positions[b - 1]; type->positions[b - 1] = k;
        }
    for (int a = 0; a < K; a++) ranking[type->positions[a]] = type->leaders[a];
}

/* Returns the regret; *initial_rounds is the length of the initial phase. */
double simulate(const double *arrival_rates, const double *position_preferences, const double *item_means,
                double coefficient, int64_t horizon, uint64_t seed, int64_t *initial_rounds) {
    double best[N], arrival_limits[N], look_limits[N][K], regret = 0; int cells = N * M * K;
    seed_state(seed); memset(types, 0, sizeof types); *initial_rounds = horizon;
    for (int i = 0; i < N; i++) { /* cumulative probabilities, searched without a branch */
        arrival_limits[i] = arrival_rates[i] + (i ? arrival_limits[i - 1] : 0);
        for (int k = 0; k < K; k++) look_limits[i][k] = position_preferences[i * K + k] + (k ? look_limits[i][k - 1] : 0);
    }
    for (int i = 0; i < N; i++) { /* best item to best position */
        int used_item[M] = {0}, used_position[K] = {0}; best[i] = 0;
        types[i].reference_bonus = 0;
        for (int k = 0; k < K; k++) types[i].positions[k] = k;
        for (int a = 0; a < K; a++) {
            int item = -1, position = -1;
            for (int j = 0; j < M; j++) if (!used_item[j] && (item < 0 || item_means[i * M + j] > item_means[i * M + item])) item = j;
            for (int k = 0; k < K; k++) if (!used_position[k] && (position < 0 || position_preferences[i * K + k] > position_preferences[i * K + position])) position = k;
            used_item[item] = used_position[position] = 1;
            best[i] += item_means[i * M + item] * position_preferences[i * K + position];
        }
    }
    for (int64_t t = 1; t <= horizon; t++) {
        double u = uniform(); int i = 0, look = 0, ranking[K];
        for (int n = 0; n < N - 1; n++) i += u >= arrival_limits[n];
        Type *type = &types[i];
        if (cells) for (int k = 0; k < K; k++) ranking[k] = (int)((t + k + 1) % M);
        else choose(type, coefficient * log((double)t), ranking);
        u = uniform();
        for (int k = 0; k < K - 1; k++) look += u >= look_limits[i][k];
        int clicked = uniform() < item_means[i * M + ranking[look]];
        double value = 0;
        for (int k = 0; k < K; k++) value += position_preferences[i * K + k] * item_means[i * M + ranking[k]];
        regret += best[i] - value;
        for (int k = 0; k < K; k++) type->displays[k][ranking[k]] += 1;
        int seen = ranking[look], first = type->rewards[look][seen] == 0;
        type->rewards[look][seen] += clicked; type->reward_totals[seen] += clicked;
        if (cells) {
            if (clicked && first && --cells == 0) {
                *initial_rounds = t;
                for (int n = 0; n < N; n++) rebuild(&types[n]);
            }
            continue;
        }
        for (int k = 0; k < K; k++) {
            int j = ranking[k]; double *row = type->ratios[j], scale = type->scales[j], sum = 0;
            for (int l = 0; l < K; l++) type->ratio_sums[l] -= row[l] * scale;
            row[k] = type->rewards[k][j] / type->displays[k][j];
            for (int l = 0; l < K; l++) sum += row[l];
            scale = type->scales[j] = 1 / sum;
            for (int l = 0; l < K; l++) type->ratio_sums[l] += row[l] * scale;
        }
        for (int k = 0; k < K; k++) type->preferences[k] = type->ratio_sums[k] * (1.0 / M);
    }
    return regret;
}
