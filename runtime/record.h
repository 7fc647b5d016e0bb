/* A record: the winner for one problem on one card, as one small JSON file (one line, keys sorted).
 *
 * It names the kernel, the text it was built from and the objects built out of it; it holds no code and no path. Reading is
 * strict about what is used (every text has a bound and an alphabet) and ignores fields it does not know, so that measured
 * evidence can be added. A record of another format number is refused with one line, like a damaged one.
 */
#ifndef Q_RECORD_H
#define Q_RECORD_H

#include "err.h"
#include "launch.h"
#include <stddef.h>

enum { RECORD_FORMAT = 1, RECORD_OBJECTS = 4, RECORD_BYTES = 64 * 1024 };

struct record_object {
    char kind[8];          /* "so", "cubin" */
    char arch[16];         /* "x86_64", "sm_70" */
    char compiler[128];    /* the first line of its --version; "NVRTC 12.9" */
    char flags[192];
    char name[65];         /* SHA-256 of unit, arch, compiler and flags: the file's name in the store */
    char content[65];      /* SHA-256 of the file */
    long size;
    int regs, spill;       /* of a cubin: registers of a thread, bytes of local memory for spills; 0 where the compiler does not tell */
};

/* One size at which a winner was timed. */
struct record_time {
    int rows, past, n;     /* n samples */
    double median_us, mad_us;
};

/* What one call moves and does, at (rows, past) = (1, 0), (512, 0), (1, 1024), (512, 1024): what lies between is on straight lines. */
struct record_cost {
    double bytes[4], ops[4];
    int known;
};

/* A card's state while a winner was timed; 0 and "" where the driver does not tell. */
struct record_clocks {
    int sm_mhz, mem_mhz, watts, celsius;
    char slowed[40];       /* by what: "power,heat" */
};

enum { RECORD_TIMES = 4 };

struct record {
    /* the problem */
    char op[24], shape[224];
    int rows, ctx;         /* buckets, 0: any */
    char profile[12];      /* numerics it was chosen under: "strict" or "pinned" */
    char card[192];
    char generator[65];    /* hash of the op's template and space */
    /* the answer */
    char params[256];
    char kernel[160];      /* symbol; "" for a pure choice (op "layout") */
    char layout[24];       /* weight layout it reads, "" if none; for op "layout" the choice */
    struct q_phases launch;   /* CUDA: how the kernel is launched; n = 0 on a CPU */
    char numerics[24];     /* class of its reductions: "canonical" or another name */
    char origin[12];       /* "default", "tuned", "borrowed" or "shipped": a winner that came with the program, measured on such a card */
    char source[65];       /* SHA-256 of the unit; "" for a pure choice */
    struct record_object objects[RECORD_OBJECTS];
    int n_objects;
    char version[32];      /* of quarry, for information */
    char from[192];        /* of a borrowed one: the card whose winner it is; else "" */
    /* the evidence: of measured records, all optional */
    struct record_cost cost;             /* of default ones too */
    char effort[12];                     /* "quick" or "normal"; "": not measured */
    struct record_time time[RECORD_TIMES];
    int n_times;
    char base_params[256];               /* the default params it was held against, and their time at time[0]'s size */
    double base_us;
    double gain;                         /* share of the default's time that the winner saves, 0: it is the default */
    double roof_pct;                     /* of what the measured roofs allow, at time[0]'s size */
    char bound[8];                       /* that roof: "bytes" or "ops" */
    int roof_doubtful;                   /* roofs were measured while others used the machine: they may be higher, and the share less */
    char ceiling[12];                    /* what its instruction path is judged by on its card: "dp4a"; "": not measured */
    char driver[32];                     /* it was measured under, "" on a CPU or where it is not known */
    struct record_clocks clocks;         /* at its last samples */
    double path_rate, read_rate;         /* that ceiling, operations a second, and the card's read bandwidth, bytes a second */
};

/* `where` (a path) begins the error's line. */
int record_parse(struct record *r, const char *text, size_t n, const char *where, struct q_err *e);
/* The symbol of the kernel of these op, shape and params; "" where they are none. */
void record_name(char kernel[160], const struct record *r);
/* Whether its kernel, or what it chooses, is that of its op, shape and params: a stored one that is not is damaged. */
int record_check(const struct record *r, const char *where, struct q_err *e);
/* One line with a newline at its end, owned by the caller; NULL when memory is short. */
char *record_print(const struct record *r);
/* The CUDA version whose NVRTC made an object, 12 for "NVRTC 12.9"; 0 for another compiler. A driver loads no object of a later one than its own. */
int record_object_cuda(const struct record_object *o);
/* Bytes and operations of a call; 0 where the record does not tell. */
void record_cost(const struct record_cost *c, double rows, double past, double *bytes, double *ops);

#endif
