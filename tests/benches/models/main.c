
#include <stdio.h>
#include <time.h>

/* For every line of input, the nanoseconds that the work took. */
int main(void) {
    prepare();
    for (int c = getchar(); c != EOF; c = getchar()) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        work();
        clock_gettime(CLOCK_MONOTONIC, &end);
        printf("%lld\n", (end.tv_sec - start.tv_sec) * 1000000000LL + end.tv_nsec - start.tv_nsec);
        fflush(stdout);
    }
    return 0;
}
