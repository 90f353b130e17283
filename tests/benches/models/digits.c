#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 1437, K = 64, C = 10 };

static float x[M][K], target[M][C], w[K][C], bias[C];

static void step(void) {
    float dw[K * C] = {0}, db[C] = {0};
#pragma omp parallel for schedule(static) reduction(+ : dw[ : K * C], db[ : C])
    for (int i = 0; i < M; i++) {
        float z[C];
        for (int c = 0; c < C; c++) z[c] = bias[c];
        for (int k = 0; k < K; k++)
            for (int c = 0; c < C; c++) z[c] += x[i][k] * w[k][c];
        float top = z[0], total = 0;
        for (int c = 1; c < C; c++) top = z[c] > top ? z[c] : top;
        for (int c = 0; c < C; c++) total += z[c] = expf(z[c] - top);
        for (int c = 0; c < C; c++) db[c] += z[c] = (z[c] / total - target[i][c]) / M;
        for (int k = 0; k < K; k++)
            for (int c = 0; c < C; c++) dw[k * C + c] += x[i][k] * z[c];
    }
    for (int k = 0; k < K; k++)
        for (int c = 0; c < C; c++) w[k][c] -= 2.0f * dw[k * C + c];
    for (int c = 0; c < C; c++) bias[c] -= 2.0f * db[c];
}

static void prepare(void) {
    for (int i = 0; i < M; i++) {
        for (int k = 0; k < K; k++) x[i][k] = (float)((i * 31 + k * 17) % 17) / 16.0f;
        target[i][i % C] = 1.0f;
    }
}

static void work(void) {
    for (int s = 0; s < 50; s++) step();
}
