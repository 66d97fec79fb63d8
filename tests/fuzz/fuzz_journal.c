/* Arbitrary bytes as the journal of finished points of an experiment. The first byte selects: bit 0, the rest
   is the report of a point, sealed with the right key and checksum; otherwise it is the whole file. Bit 1:
   the file is a shard to be merged; otherwise a run resumes from it. */
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"
#include "fuzz.h"

static const char text_of[] = "model drop { dof y = 1, y' = 0; y'' = -1; constraint floor: y >= 0 }\n"
                              "experiment a {\n"
                              "    sweep h in [0.25, 0.5]\n"
                              "    run drop for 1 with sweeping(h = h)\n"
                              "    measure m = last(y)\n"
                              "    save t, y { file = \"y.csv\" }\n"
                              "    save m { file = \"m.npz\" }\n"
                              "}\n";

static cdl_status experiment(const char *option, size_t *said)
{
    cdl *s = fuzz_session(said);
    if (option)
        cdl_set(s, option, "yes");
    cdl_status st = cdl_run_text(s, "t.cdl", text_of, sizeof text_of - 1), end = cdl_finish(s);
    cdl_free(s);
    return end > st ? end : st;
}

/* The key of the first point, as a run writes it. */
static uint64_t first_key(void)
{
    static uint64_t key;
    static bool known;
    size_t said = 0;
    if (known)
        return key;
    unlink("out/a.points");
    require(experiment("resume", &said) == CDL_OK);
    FILE *f = fopen("out/a.points", "rb");
    require(f && fread(&key, sizeof key, 1, f) == 1);
    fclose(f);
    known = true;
    return key;
}

static void report_seal(const char *path, const uint8_t *p, size_t n)
{
    uint64_t key = first_key(), length = n, check = hash_bytes(p, n, key);
    FILE *f = fopen(path, "wb");
    require(f != NULL);
    fwrite(&key, sizeof key, 1, f);
    fwrite(&length, sizeof length, 1, f);
    fwrite(p, 1, n, f);
    fwrite(&check, sizeof check, 1, f);
    fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const at[] = { "out/a.points", "out/a.1-of-1.points" };
    size_t said = 0;
    if (!size)
        return 0;
    mkdir("out", 0777);
    first_key();
    bool merge = data[0] & 2;
    unlink(at[!merge]);
    if (data[0] & 1)
        report_seal(at[merge], data + 1, size - 1);
    else
        fuzz_write(at[merge], data + 1, size - 1);
    cdl_status st = experiment(merge ? "merge" : "resume", &said);
    require(st == CDL_OK || said > 0);
    return 0;
}
