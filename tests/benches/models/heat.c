#include <stdlib.h>

enum { N = 2048, W = N + 2 };

static float *a, *b;

static void advance(const float *restrict u, float *restrict v) {
#pragma omp parallel for schedule(static)
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++) {
            float here = u[i * W + j];
            float sum = u[(i - 1) * W + j] + u[(i + 1) * W + j] + u[i * W + j - 1] + u[i * W + j + 1];
            v[i * W + j] = here + 0.2f * (sum - 4.0f * here);
        }
}

static void prepare(void) {
    a = calloc(W * W, sizeof(float));
    b = calloc(W * W, sizeof(float));
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++) a[i * W + j] = (float)((i * 31 + j * 17) % 101);
}

static void work(void) {
    for (int s = 0; s < 50; s++) {
        advance(a, b);
        advance(b, a);
    }
}
