enum { N = 784 * 512 };

static float w[N], g[N];

static void prepare(void) {
    for (int i = 0; i < N; i++) w[i] = (float)(i % 101), g[i] = (float)(i % 7);
}

static void work(void) {
    for (int s = 0; s < 50; s++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < N; i++) w[i] -= 0.05f * (g[i] + 0.01f * w[i]);
    }
}
