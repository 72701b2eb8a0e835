/* small_data.h - a data set of 64 training and 30 test images of 8x8, for tests of whole runs. */
#ifndef TK_TESTS_TRAINER_SMALL_DATA_H
#define TK_TESTS_TRAINER_SMALL_DATA_H

enum { SMALL_DATA_SIDE = 8, SMALL_DATA_TRAIN = 64, SMALL_DATA_TEST = 30, SMALL_DATA_DIR_BYTES = 64 };

/* A new folder with the four IDX files, readable by everyone. */
void small_data_make(char dir[static SMALL_DATA_DIR_BYTES]);
void small_data_make_in(const char *home, char dir[static SMALL_DATA_DIR_BYTES]);

/* The folder with all that is in it. */
void small_data_remove(const char *dir);

#endif
