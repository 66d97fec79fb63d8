/* The syntax files of the editors contain every keyword of the lexer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>
#include <cmocka.h>
#include "syntax/parse.h"

static char text_of_file[1 << 16];

static void read_file(const char *name)
{
    const char *src = getenv("srcdir");
    char path[4096];
    snprintf(path, sizeof path, "%s/lang/editors/%s", src ? src : ".", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text_of_file, 1, sizeof text_of_file - 1, f);
    fclose(f);
    assert_in_range(n, 100, sizeof text_of_file - 2);
    text_of_file[n] = 0;
}

static int has_word(const char *w)
{
    size_t n = strlen(w);
    for (const char *p = text_of_file; (p = strstr(p, w)); p++) {
        int before = p == text_of_file ? ' ' : p[-1];
        if (!isalnum(before) && before != '_' && !isalnum((unsigned char)p[n]) && p[n] != '_')
            return 1;
    }
    return 0;
}

static void check_keywords(const char *name)
{
    size_t n = 0;
    read_file(name);
    for (; keyword_list[n]; n++)
        if (!has_word(keyword_list[n]))
            fail_msg("%s lacks '%s'", name, keyword_list[n]);
    assert_true(n > 40);
    assert_false(has_word("parm"));
}

static void test_vim(void **state)
{
    (void)state;
    check_keywords("vim/syntax/cdl.vim");
}
static void test_vscode(void **state)
{
    (void)state;
    check_keywords("vscode/syntaxes/cdl.tmLanguage.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_vim), cmocka_unit_test(test_vscode) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
