/* For tests of files: a folder of the test's own, made by dir_temp in its setup, and the paths in it. */
#ifndef OWN_DIR_H
#define OWN_DIR_H

#include "files.h"

static char dir[Q_PATH];

/* Good until four more were asked for. */
static char *at(const char *name)
{
    static char path[4][Q_PATH];
    static int next;
    char *p = path[next++ % 4];
    assert_int_equal(path_join(p, NULL, dir, name, NULL), Q_OK);
    return p;
}

static int own_dir_remove(void **state)
{
    dir_remove(dir);
    return 0;
}

#endif
