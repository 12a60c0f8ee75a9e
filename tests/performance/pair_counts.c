// All tables n[x_i, y, x_j], i < j, by the obvious loop, rows in blocks that stay in cache. codes: attribute-major.
// gcc -O3 -march=native -shared -fPIC
#include <stdint.h>
#define BLOCK 4096
void pair_counts(const uint8_t *codes, const uint8_t *labels, const int *cardinalities, long n_rows, int n, int n_labels,
                 uint32_t *tables) {
  for (long start = 0; start < n_rows; start += BLOCK) {
    long stop = start + BLOCK < n_rows ? start + BLOCK : n_rows;
    uint32_t *table = tables;
    for (int i = 0; i < n; i++)
      for (int j = i + 1; j < n; j++) {
        const uint8_t *a = codes + i * n_rows, *b = codes + j * n_rows;
        int c = cardinalities[j];
        for (long t = start; t < stop; t++) table[(a[t] * n_labels + labels[t]) * c + b[t]]++;
        table += (long)cardinalities[i] * n_labels * c;
      }
  }
}
