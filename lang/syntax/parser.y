/* parser: the grammar of the language.  Every statement ends in a NEWLINE that parse.c puts there; a { of
   statements (BODY) and one of attributes are different tokens, so that an error is left behind at the end
   of its own statement.  parse.c checks where a statement is allowed. */
%code requires {
#include <stdio.h>
#include <string.h>
#include "syntax/scan.h"

/* an expression: how deep brackets and right operands nest, and how high the tree is */
typedef struct { ast *n; uint32_t nest, high; } tree;
}

%code {
enum { HIGH_MAX = 20000 };      /* a + b + c + … : the left spine, which walkers recurse over */

#define YYMAXDEPTH 20000
#define YYMALLOC(n) arena_alloc(sc->a, (n))
#define YYFREE(p) ((void)(p))
#define YYLLOC_DEFAULT(cur, rhs, n) \
    ((cur) = (span){sc->file, (n) ? YYRHSLOC(rhs, 1).begin : YYRHSLOC(rhs, 0).end, YYRHSLOC(rhs, n).end})

int parser_lex(PARSER_STYPE *v, span *at, scanner *sc);
static void parser_error(span *at, scanner *sc, ast **file, const char *message);
static ast *node(scanner *sc, ast_kind k, span at, uint32_t n, ast **kid);
#define NODE_(kind, at, ...) node(sc, (kind), (at), sizeof((ast *[]){NULL, __VA_ARGS__}) / sizeof(ast *) - 1, \
                                  (ast *[]){NULL, __VA_ARGS__})
#define NODE(kind, ...) NODE_(AST_##kind, __VA_ARGS__)
static ast *name(scanner *sc, span at, sym word);
static ast *named(ast *n, sym name, span at);
static ast *counted(ast *n, uint32_t primes);
static ast *documented(scanner *sc, ast *n);
static ast *texted(ast *n, const ast *str);
static ast *body(ast *owner, const ast *list);
static ast *push(scanner *sc, ast *list, ast *kid);
static ast *push_statement(scanner *sc, ast *list, ast *statement);
static tree leaf(ast *n);
static tree deeper(scanner *sc, tree t, span at);
static tree unary(scanner *sc, ast_kind k, op_code op, span at, tree x);
static tree binary(scanner *sc, ast_kind k, op_code op, span at, span sign, tree x, tree y);
static tree chain(scanner *sc, ast_kind k, span at, tree x);
static tree headed(scanner *sc, span at);
static tree headless(tree list);
static tree adopt(scanner *sc, ast_kind k, span at, tree first, tree list);
static tree append(scanner *sc, tree list, tree x);
static tree conditional(scanner *sc, span at, tree c, tree x, tree y);
static tree generator(scanner *sc, span at, tree value, tree indices, tree where);
static tree number(scanner *sc, span at, ast *num, ast *unit);
static ast *dimension(scanner *sc, tree x);
static ast *unit_times(scanner *sc, span at, ast *unit, ast *by, double power);
static ast *unit_term(scanner *sc, span at, sym name);
static double unit_exponent(scanner *sc, ast *num, double sign, ast *over);
static ast *unit_one(scanner *sc, span at, const ast *num);
static ast *use(scanner *sc, span at, const ast *path, const ast *file, sym alias, span alias_at);
}

%define api.pure full
%define api.prefix {parser_}
%define api.token.prefix {T_}
%define api.location.type {span}
%define parse.error custom
%locations
%lex-param {scanner *sc}
%parse-param {scanner *sc} {ast **file}
%expect 0

%union {
    tree t;
    ast *n;
    sym name;
    uint32_t k;
}

/* ends and signs; what continues an expression stands from OR to PRIME */
%token NEWLINE "end of the statement" SEP "end of the line" BODY_OPEN "{ " BODY_CLOSE "} "
%token COMMA "," ROW ";" COLON ":" SET "=" LBRACE "{" RBRACE "}" RPAR ")" RBRACKET "]"
%token OR "or" AND "and" EQ "==" NE "!=" LT "<" LE "<=" GT ">" GE ">=" IN "in"
%token TO ".." PLUS "+" MINUS "-" STAR "*" SLASH "/" HAT "^"
%token LPAR "(" LBRACKET "[" DOT "." PRIME "'"
%token NOT "not" IF "if" THEN "then" ELSE "else" CASES "cases" OTHERWISE "otherwise" TRUE "true" FALSE "false"
%token USE "use" AS "as" FN "fn" LET "let" PARAM "param" MODEL "model" PART "part" DOF "dof" HISTORY "history"
%token DOMAIN "domain" FIELD "field" AT "at" BOUNDARY "boundary" OBSTACLE "obstacle" ROD "rod" SHAPE "shape" KINETIC "kinetic"
%token POTENTIAL "potential" DISSIPATION "dissipation" FORCE "force" CONSTRAINT "constraint" WHEN "when" STOP "stop"
%token EXPERIMENT "experiment" RUN "run" WITH "with" SWEEP "sweep" MEASURE "measure" EXPECT "expect" WITHIN "within" PLOT "plot"
%token AGAINST "against" SAVE "save" FOR "for" WHERE "where"
%token <name> NAME "a name"
%token <n> NUMBER "a number" STRING "a string"
/* of the scanner alone */
%token COMMENT DOC SEMI BAD_COMMENT BAD_NUMBER BAD_STRING BAD_SIGN BAD_CHAR

%type <n> stmts stmt bind binds factor factors param params dof dofs dims family coordinates field fields names
%type <n> block block_opt attributes attribute unit unit_factor
%type <t> index indices expr postfix subscripts args args_opt arg arguments path exprs rows row cases case
%type <t> relation where init within against bound backend span
%type <n> body
%type <k> primes

%precedence LOWEST
%left "or"
%left "and"
%precedence "not"
%nonassoc "==" "!=" "<" "<=" ">" ">=" "in"
%nonassoc ".."
%left "+" "-"
%left "*" "/"
%precedence UMINUS
%right "^"

%initial-action { @$ = (span){sc->file, 0, 0}; }
%%
source: stmts                           { *file = body(NODE(FILE, @$), $1); }

stmts: %empty                           { $$ = NODE(LIST, @$); }
     | stmts stmt NEWLINE               { $$ = push_statement(sc, $1, $2); }
     | stmts error NEWLINE              { $$ = push(sc, $1, NODE(ERROR, @2)); scan_doubt(sc, @2); yyerrok; }

/* statements */
stmt: "use" path                        { $$ = use(sc, @$, $2.n, NULL, NULL, @2); }
    | "use" path "as" NAME              { $$ = use(sc, @$, $2.n, NULL, $4, @4); }
    | "use" STRING                      { $$ = use(sc, @$, NULL, $2, NULL, @2); }
    | "use" STRING "as" NAME            { $$ = use(sc, @$, NULL, $2, $4, @4); }
    | "fn" NAME "(" names ")" "=" expr  { $$ = named(NODE(FN, @$, $4, $7.n), $2, @2); }
    | "fn" NAME "(" ")" "=" expr        { $$ = named(NODE(FN, @$, NODE(LIST, @3), $6.n), $2, @2); }
    | "let" binds                       { $$ = NODE(LET, @$, $2); }
    | "measure" binds                   { $$ = NODE(MEASURE, @$, $2); }
    | "param" params                    { $$ = NODE(PARAM, @$, $2); }
    | "model" NAME body                 { $$ = named(body(NODE(MODEL, @$), $3), $2, @2); }
    | "experiment" NAME body            { $$ = named(body(NODE(EXPERIMENT, @$), $3), $2, @2); }
    | "for" indices where body          { $$ = NODE(FOR, @$, $2.n, $3.n, $4); }
    | "run" path args_opt span backend  { $$ = NODE(RUN, @$, $2.n, $3.n, $4.n, $5.n); }
    | "run" NAME "=" path args_opt span backend
                                        { $$ = named(NODE(RUN, @$, $4.n, $5.n, $6.n, $7.n), $2, @2); }
    | "expect" expr within              { $$ = NODE(EXPECT, @$, $2.n, $3.n); }
    | "expect" expr within STRING       { $$ = texted(NODE(EXPECT, @$, $2.n, $3.n), $4); $$->name_at = @4; }
    | "plot" exprs against block_opt    { $$ = NODE(PLOT, @$, $2.n, $3.n, $4); }
    | "save" exprs block_opt            { $$ = NODE(SAVE, @$, $2.n, $3); }
    | "sweep" factors                   { $$ = $2; for (uint32_t i = 0; i < $$->n; i++) $$->kid[i]->at = @$; }
    | "dof" dofs                        { $$ = NODE(DOF, @$, $2); }
    | "history" NAME primes "(" NAME ")" "=" expr
                                        { ast *none = NODE(LIST, @3);
                                          ast *arg = name(sc, @5, $5);
                                          $$ = counted(named(NODE(HISTORY, @$, none, arg, $8.n), $2, @2), $3); }
    | "history" NAME primes "[" indices "]" primes "(" NAME ")" "=" expr
                                        { ast *arg = name(sc, @9, $9);
                                          $$ = counted(named(NODE(HISTORY, @$, $5.n, arg, $12.n), $2, @2), $3 + $7); }
    | "kinetic" expr                    { $$ = NODE(KINETIC, @$, $2.n); }
    | "potential" expr                  { $$ = NODE(POTENTIAL, @$, $2.n); }
    | "dissipation" expr                { $$ = NODE(DISSIPATION, @$, $2.n); }
    | "force" expr ":" expr             { $$ = NODE(FORCE, @$, $2.n, $4.n); }
    | "constraint" NAME family block_opt
                                        { $$ = named(NODE(CONSTRAINT, @$, $3->kid[0], $3->kid[1], NULL, $4), $2, @2); }
    | "constraint" NAME family ":" relation block_opt
                                        { $$ = named(NODE(CONSTRAINT, @$, $3->kid[0], $3->kid[1], $5.n, $6), $2, @2); }
    | "when" expr block                 { $$ = NODE(WHEN, @$, $2.n, $3); }
    | "stop" "when" expr                { $$ = NODE(STOP, @$, $3.n); }
    | "part" NAME ":" path args_opt block_opt
                                        { $$ = named(NODE(PART, @$, NODE(LIST, @2), $4.n, $5.n, $6), $2, @2); }
    | "part" NAME "[" indices "]" ":" path args_opt block_opt
                                        { $$ = named(NODE(PART, @$, $4.n, $7.n, $8.n, $9), $2, @2); }
    | "domain" indices                  { $$ = NODE(DOMAIN, @$, $2.n); }
    | "field" fields                    { $$ = NODE(FIELD, @$, $2); }
    | "obstacle" relation               { $$ = NODE(OBSTACLE, @$, $2.n); }
    | "at" postfix "=" expr block       { $$ = NODE(AT, @$, $2.n, $4.n, $5); }
    | "boundary" attribute where        { $$ = NODE(BOUNDARY, @$, $2, $3.n); }
    | "rod" NAME block                  { $$ = named(NODE(ROD, @$, $3), $2, @2); }
    | "shape" NAME ":" expr             { $$ = named(NODE(SHAPE, @$, $4.n, NODE(LIST, @4)), $2, @2); }
    | "shape" NAME ":" expr "at" exprs  { $$ = named(NODE(SHAPE, @$, $4.n, $6.n), $2, @2); }
    | attribute
    | expr                              { $$ = NODE(EXPR, @$, $1.n); }

body: BODY_OPEN stmts BODY_CLOSE        { $$ = $2; $$->at = @$; }

/* declared items */
binds: bind                             { $$ = NODE(LIST, @$, $1); }
     | binds "," bind                   { $$ = push(sc, $1, $3); $$->at = @$; }
bind: NAME "=" expr                     { $$ = documented(sc, named(NODE(BIND, @$, $3.n), $1, @1)); }

params: param                           { $$ = NODE(LIST, @$, $1); }
      | params "," param                { $$ = push(sc, $1, $3); $$->at = @$; }
param: NAME bound init                  { $$ = documented(sc, named(NODE(PARAM_ITEM, @$, $2.n, $3.n), $1, @1)); }
bound: %empty                           { $$ = leaf(NULL); }
     | "in" expr                        { $$ = $2; }
init: %empty                            { $$ = leaf(NULL); }
    | "=" expr                          { $$ = $2; }

/* each a sweep of its own */
factors: factor                         { $$ = NODE(LIST, @$, $1); }
       | factors "," factor             { $$ = push(sc, $1, $3); }
factor: names "in" expr                 { $$ = NODE(SWEEP, @$, $1, $3.n); }

dofs: dof                               { $$ = NODE(LIST, @$, $1); }
    | dofs "," dof                      { $$ = push(sc, $1, $3); $$->at = @$; }
dof: NAME primes space init             { ast *none = NODE(LIST, @2);
                                          $$ = NODE(DOF_ITEM, @$, none, $<n>3, $4.n);
                                          $$ = documented(sc, counted(named($$, $1, @1), $2)); }
   | NAME primes "[" dims "]" primes space init
                                        { $$ = NODE(DOF_ITEM, @$, $4, $<n>7, $8.n);
                                          $$ = documented(sc, counted(named($$, $1, @1), $2 + $6)); }
space: %empty                           { $<n>$ = NULL; }
     | "in" NAME                        { $<n>$ = name(sc, @2, $2); }
primes: %empty                          { $$ = 0; }
      | primes "'"                      { $$ = $1 + 1; }
dims: expr                              { $$ = NODE(LIST, @$, dimension(sc, $1)); }
    | dims "," expr                     { $$ = push(sc, $1, dimension(sc, $3)); $$->at = @$; }

fields: field                           { $$ = NODE(LIST, @$, $1); }
      | fields "," field                { $$ = push(sc, $1, $3); $$->at = @$; }
field: NAME "(" coordinates ")"         { $$ = documented(sc, named(body(NODE(FIELD_ITEM, @$), $3), $1, @1)); }
coordinates: names
names: NAME                             { $$ = NODE(LIST, @$, name(sc, @1, $1)); }
     | names "," NAME                   { $$ = push(sc, $1, name(sc, @3, $3)); $$->at = @$; }

/* families: i in 1..N, j in i..N where c */
index: NAME "in" expr                   { $$ = unary(sc, AST_INDEX, OP_NONE, @$, $3); named($$.n, $1, @1); }
indices: index                          { $$ = append(sc, leaf(NODE(LIST, @$)), $1); }
       | indices "," index              { $$ = append(sc, $1, $3); $$.n->at = @$; }
where: %empty                           { $$ = leaf(NULL); }
     | "where" expr                     { $$ = $2; }
family: %empty                          { $$ = NODE(LIST, @$, NODE(LIST, @$), NULL); }
      | "[" indices where "]"           { $$ = NODE(LIST, @$, $2.n, $3.n); }

relation: expr
        | expr "=" expr                 { $$ = binary(sc, AST_SET, OP_NONE, @$, @2, $1, $3); }

/* { key = value, … } */
block_opt: %empty                       { $$ = NULL; }
         | block
block: "{" "}"                          { $$ = NODE(BLOCK, @$); }
     | "{" attributes "}"               { $$ = $2; $$->at = @$; }
     | "{" attributes seps "}"          { $$ = $2; $$->at = @$; }
attributes: attribute                   { $$ = NODE(BLOCK, @$, $1); }
          | attributes seps attribute   { $$ = push(sc, $1, $3); }
seps: sep | seps sep
sep: "," | SEP
attribute: expr "=" expr                { $$ = binary(sc, AST_SET, OP_NONE, @$, @2, $1, $3).n; }

/* the tails of run, expect and plot */
span: %empty                            { $$ = leaf(NULL); }
    | "for" expr                        { $$ = $2; }
backend: %empty                         { $$ = leaf(NULL); }
       | "with" path                    { $$ = $2; }
       | "with" path arguments          { $$ = adopt(sc, AST_CALL, @2, $2, $3); $$.n->at = span_join(@2, @3); }
within: %empty                          { $$ = leaf(NULL); }
      | "within" expr                   { $$ = $2; }
against: %empty                         { $$ = leaf(NULL); }
       | "against" expr                 { $$ = $2; }
path: NAME                              { $$ = leaf(name(sc, @1, $1)); }
    | path "." NAME                     { $$ = chain(sc, AST_MEMBER, @$, $1); named($$.n, $3, @3); }
exprs: expr                             { $$ = append(sc, leaf(NODE(LIST, @$)), $1); }
     | exprs "," expr                   { $$ = append(sc, $1, $3); $$.n->at = @$; }

/* expressions */
expr: NUMBER                            { $$ = leaf($1); }
    | NUMBER "[" unit "]"               { $$ = number(sc, @$, $1, $3); }
    | postfix
    | "cases" "{" cases "}"             { $$ = deeper(sc, $3, @$); $$.n->at = @$; }
    | "cases" "{" cases SEP "}"         { $$ = deeper(sc, $3, @$); $$.n->at = @$; }
    | "if" expr "then" expr "else" expr %prec LOWEST
                                        { $$ = conditional(sc, @$, $2, $4, $6); }
    | "not" expr                        { $$ = unary(sc, AST_UNARY, OP_NOT, @$, $2); }
    | "-" expr %prec UMINUS             { $$ = unary(sc, AST_UNARY, OP_NEG, @$, $2); }
    | expr "or" expr                    { $$ = binary(sc, AST_BINARY, OP_OR, @$, @2, $1, $3); }
    | expr "and" expr                   { $$ = binary(sc, AST_BINARY, OP_AND, @$, @2, $1, $3); }
    | expr "==" expr                    { $$ = binary(sc, AST_BINARY, OP_EQ, @$, @2, $1, $3); }
    | expr "!=" expr                    { $$ = binary(sc, AST_BINARY, OP_NE, @$, @2, $1, $3); }
    | expr "<" expr                     { $$ = binary(sc, AST_BINARY, OP_LT, @$, @2, $1, $3); }
    | expr "<=" expr                    { $$ = binary(sc, AST_BINARY, OP_LE, @$, @2, $1, $3); }
    | expr ">" expr                     { $$ = binary(sc, AST_BINARY, OP_GT, @$, @2, $1, $3); }
    | expr ">=" expr                    { $$ = binary(sc, AST_BINARY, OP_GE, @$, @2, $1, $3); }
    | expr "in" expr                    { $$ = binary(sc, AST_IN, OP_NONE, @$, @2, $1, $3); }
    | expr ".." expr                    { $$ = binary(sc, AST_RANGE, OP_NONE, @$, @2, $1, $3); }
    | expr "+" expr                     { $$ = binary(sc, AST_BINARY, OP_ADD, @$, @2, $1, $3); }
    | expr "-" expr                     { $$ = binary(sc, AST_BINARY, OP_SUB, @$, @2, $1, $3); }
    | expr "*" expr                     { $$ = binary(sc, AST_BINARY, OP_MUL, @$, @2, $1, $3); }
    | expr "/" expr                     { $$ = binary(sc, AST_BINARY, OP_DIV, @$, @2, $1, $3); }
    | expr "^" expr                     { $$ = binary(sc, AST_BINARY, OP_POW, @$, @2, $1, $3); }

postfix: NAME                           { $$ = leaf(name(sc, @1, $1)); }
       | STRING                         { $$ = leaf($1); }
       | "true"                         { $$ = leaf(NODE(BOOL, @$)); $$.n->num = 1; }
       | "false"                        { $$ = leaf(NODE(BOOL, @$)); }
       | "(" expr ")"                   { $$ = deeper(sc, $2, @$); }
       | "[" row "]"                    { $$ = deeper(sc, $2, @$); $$.n->at = @$; }
       | "[" rows "]"                   { $$ = deeper(sc, $2, @$); $$.n->at = @$; }
       | "[" expr "for" indices where "]"
                                        { tree g = generator(sc, span_join(@2, $5.n ? @5 : @4), $2, $4, $5);
                                          $$ = deeper(sc, append(sc, leaf(NODE(VECTOR, @$)), g), @$); }
       | postfix arguments              { $$ = adopt(sc, AST_CALL, @$, $1, $2); }
       | postfix "[" subscripts "]"     { $$ = adopt(sc, AST_SUBSCRIPT, @$, $1, $3); }
       | postfix "." NAME               { $$ = chain(sc, AST_MEMBER, @$, $1); named($$.n, $3, @3); }
       | postfix "'"                    { $$ = chain(sc, AST_PRIME, @$, $1); }

subscripts: expr                        { $$ = append(sc, headed(sc, @$), $1); }
          | subscripts "," expr         { $$ = append(sc, $1, $3); }

args_opt: %empty                        { $$ = leaf(NODE(LIST, @$)); }
        | arguments                     { $$ = headless($1); }
arguments: "(" ")"                      { $$ = headed(sc, @$); }
         | "(" args ")"                 { $$ = $2; $$.n->at = @$; }
         | "(" expr "for" indices where ")"
                                        { tree g = generator(sc, span_join(@2, $5.n ? @5 : @4), $2, $4, $5);
                                          $$ = append(sc, headed(sc, @$), g); }
args: arg                               { $$ = append(sc, headed(sc, @$), $1); }
    | args "," arg                      { $$ = append(sc, $1, $3); }
arg: expr
   | NAME "=" expr                      { $$ = unary(sc, AST_ARG, OP_NONE, @$, $3); named($$.n, $1, @1); }
   | "kinetic" "=" expr                 { $$ = unary(sc, AST_ARG, OP_NONE, @$, $3);
                                          named($$.n, sym_str(sc->names, "kinetic"), @1); }

rows: row ROW row                       { $$ = append(sc, append(sc, leaf(NODE(MATRIX, @$)), $1), $3); }
    | rows ROW row                      { $$ = append(sc, $1, $3); }
row: expr                               { $$ = append(sc, leaf(NODE(VECTOR, @$)), $1); }
   | row "," expr                       { $$ = append(sc, $1, $3); $$.n->at = @$; }

cases: case                             { $$ = append(sc, leaf(NODE(CASES, @$)), $1); }
     | cases SEP case                   { $$ = append(sc, $1, $3); }
case: expr "if" expr                    { $$ = binary(sc, AST_CASE, OP_NONE, @$, @2, $1, $3); }
    | expr "otherwise"                  { $$ = binary(sc, AST_CASE, OP_NONE, @$, @2, $1, leaf(NULL)); }

/* units: a product of powers, kept flat */
unit: unit_factor
    | unit "*" unit_factor              { $$ = unit_times(sc, @$, $1, $3, 1); }
    | unit "/" unit_factor              { $$ = unit_times(sc, @$, $1, $3, -1); }
unit_factor: NAME                       { $$ = unit_term(sc, @$, $1); $$->kid[0]->name_at = @1; }
           | NUMBER                     { $$ = unit_one(sc, @$, $1); }
           | unit_factor "^" power      { $$ = unit_times(sc, @$, NULL, $1, $<n>3->num); }
           | "(" unit ")"               { $$ = $2; }
power: NUMBER                           { $<n>$ = $1; $1->num = unit_exponent(sc, $1, 1, NULL); }
     | "-" NUMBER                       { $<n>$ = $2; $2->num = unit_exponent(sc, $2, -1, NULL); }
     | "(" NUMBER ")"                   { $<n>$ = $2; $2->num = unit_exponent(sc, $2, 1, NULL); }
     | "(" "-" NUMBER ")"               { $<n>$ = $3; $3->num = unit_exponent(sc, $3, -1, NULL); }
     | "(" NUMBER "/" NUMBER ")"        { $<n>$ = $2; $2->num = unit_exponent(sc, $2, 1, $4); }
     | "(" "-" NUMBER "/" NUMBER ")"    { $<n>$ = $3; $3->num = unit_exponent(sc, $3, -1, $5); }
%%
/* kid[0] is not a child: an array of none would not be C */
static ast *node(scanner *sc, ast_kind k, span at, uint32_t n, ast **kid) {
    ast *x = ast_new(sc->a, k, at, n);
    for (uint32_t i = 0; i < n; i++) x->kid[i] = kid[i + 1];
    return x;
}

static ast *named(ast *n, sym name, span at) {
    n->name = name;
    n->name_at = at;
    return n;
}

static ast *name(scanner *sc, span at, sym word) { return named(ast_new(sc->a, AST_NAME, at, 0), word, at); }

static ast *counted(ast *n, uint32_t primes) {
    n->num = primes;
    return n;
}

static ast *documented(scanner *sc, ast *n) {
    if (!n->doc) n->doc = scan_doc(sc, n->at.begin);
    return n;
}

static ast *texted(ast *n, const ast *str) {
    n->text = str->text;
    n->len = str->len;
    return n;
}

/* the list's elements become the owner's children */
static ast *body(ast *owner, const ast *list) {
    owner->n = list->n;
    owner->kid = list->kid;
    return owner;
}

static ast *push(scanner *sc, ast *list, ast *kid) {
    ast_push(sc->a, list, kid);
    return list;
}

/* A statement with a lexical error may not be what was intended, so it is dropped. A statement with others
   inside is kept without them; one that stands for several is divided. */
static ast *push_statement(scanner *sc, ast *list, ast *s) {
    bool holds_others = s->kind == AST_MODEL || s->kind == AST_EXPERIMENT || s->kind == AST_FOR;
    if (sc->failed && !holds_others) {
        scan_doubt(sc, s->at);
        return push(sc, list, NODE(ERROR, s->at));
    }
    if (s->kind != AST_LIST) return push(sc, list, documented(sc, s));
    for (uint32_t i = 0; i < s->n; i++) push(sc, list, documented(sc, s->kid[i]));
    return list;
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static tree leaf(ast *n) { return (tree){n, 0, 1}; }

/* Keeps every tree within the depth of recursive walks; deeper parts become an ERROR. */
static tree bounded(scanner *sc, ast *n, uint32_t nest, uint32_t high) {
    if (nest <= AST_MAX_DEPTH && high <= HIGH_MAX) return (tree){n, nest, high};
    if (nest > AST_MAX_DEPTH) scan_limit(sc, n->at, "expressions nest deeper", AST_MAX_DEPTH);
    else scan_limit(sc, n->at, "a chain of operators is longer", HIGH_MAX);
    return leaf(ast_new(sc->a, AST_ERROR, n->at, 0));
}

static tree deeper(scanner *sc, tree t, span at) {
    if (t.nest < AST_MAX_DEPTH) return (tree){t.n, t.nest + 1, t.high};
    return bounded(sc, ast_new(sc->a, AST_ERROR, at, 0), t.nest + 1, t.high);
}

static tree unary(scanner *sc, ast_kind k, op_code op, span at, tree x) {
    ast *n = NODE_(k, at, x.n);
    n->op = op;
    return bounded(sc, n, x.nest + 1, x.high + 1);
}

/* left-associative: the left side nests no deeper */
static tree binary(scanner *sc, ast_kind k, op_code op, span at, span sign, tree x, tree y) {
    ast *n = NODE_(k, at, x.n, y.n);
    n->op = op;
    n->name_at = sign;
    return bounded(sc, n, larger(x.nest, y.nest + (op == OP_POW)), larger(x.high, y.high) + 1);
}

static tree chain(scanner *sc, ast_kind k, span at, tree x) {
    return bounded(sc, NODE_(k, at, x.n), x.nest, x.high + 1);
}

/* A list with an empty first place for the applied function. */
static tree headed(scanner *sc, span at) { return leaf(NODE(LIST, at, 0)); }

static tree headless(tree list) {
    list.n->n--;
    list.n->kid++;
    return list;
}

static tree adopt(scanner *sc, ast_kind k, span at, tree first, tree list) {
    list.n->kind = k;
    list.n->at = at;
    list.n->kid[0] = first.n;
    return bounded(sc, list.n, larger(first.nest, list.nest + 1), larger(first.high, list.high) + 1);
}

static tree append(scanner *sc, tree list, tree x) {
    ast_push(sc->a, list.n, x.n);
    return (tree){list.n, larger(list.nest, x.nest), larger(list.high, x.high + 1)};
}

static tree conditional(scanner *sc, span at, tree c, tree x, tree y) {
    return bounded(sc, NODE(IF, at, c.n, x.n, y.n), larger(larger(c.nest, x.nest), y.nest) + 1,
                   larger(larger(c.high, x.high), y.high) + 1);
}

static tree generator(scanner *sc, span at, tree value, tree indices, tree where) {
    ast *g = NODE(GEN, at, value.n);
    for (uint32_t i = 0; i < indices.n->n; i++) ast_push(sc->a, g, indices.n->kid[i]);
    ast_push(sc->a, g, where.n);
    return bounded(sc, g, larger(larger(value.nest, indices.nest), where.nest) + 1,
                   larger(larger(value.high, indices.high), where.high) + 1);
}

static tree number(scanner *sc, span at, ast *num, ast *unit) {
    num->at = at;
    ast_push(sc->a, num, unit);
    return leaf(num);
}

/* in dof x[…] an index is read as a membership first */
static ast *dimension(scanner *sc, tree x) {
    const ast *in = x.n;
    if (in->kind != AST_IN || in->kid[0]->kind != AST_NAME) return x.n;
    return named(NODE(INDEX, in->at, in->kid[1]), in->kid[0]->name, in->kid[0]->at);
}

static ast *unit_term(scanner *sc, span at, sym name) {
    ast *one = ast_new(sc->a, AST_NUM, at, 0), *term = NODE(UNIT_TERM, at, one);
    one->num = 1;
    term->name = name;
    return NODE(UNIT, at, term);
}

static ast *unit_one(scanner *sc, span at, const ast *num) {
    if (num->num != 1) {
        diag *e = diag_error(sc->d, DIAG_SYNTAX, at, "a unit may contain no number other than 1");
        diag_hint(sc->d, e, "write the factor in front of the unit: 60 [s], 1e3 [1/s]");
        sc->failed = true;
    }
    return unit_term(sc, at, NULL);
}

/* unit * by^power; unit NULL is 1 */
static ast *unit_times(scanner *sc, span at, ast *unit, ast *by, double power) {
    ast *u = unit ? unit : ast_new(sc->a, AST_UNIT, at, 0);
    for (uint32_t i = 0; i < by->n; i++) {
        by->kid[i]->kid[0]->num *= power;
        if (!unit) by->kid[i]->at = by->n == 1 ? at : by->kid[i]->at;
        ast_push(sc->a, u, by->kid[i]);
    }
    u->at = at;
    return u;
}

static double unit_exponent(scanner *sc, ast *num, double sign, ast *over) {
    double p = num->num, q = over ? over->num : 1;
    if (p > 100 || q > 100 || q == 0 || p != (int)p || q != (int)q) {
        diag *e = diag_error(sc->d, DIAG_SYNTAX, num->at, "a unit's exponent is a small integer or a fraction of two");
        diag_hint(sc->d, e, "such as m^2, s^-1 or m^(1/2)");
        return 1;
    }
    return sign * p / q;
}

static void path_text(text *out, const ast *path) {
    if (path->kind == AST_MEMBER) {
        path_text(out, path->kid[0]);
        text_putc(out, '.');
    }
    text_puts(out, path->name);
}

static ast *use(scanner *sc, span at, const ast *path, const ast *file, sym alias, span alias_at) {
    ast *n = named(ast_new(sc->a, AST_USE, at, 0), alias, alias_at);
    text dotted = {.a = sc->a};
    if (file) return counted(texted(n, file), 1);
    path_text(&dotted, path);
    n->text = dotted.at;
    n->len = dotted.n;
    return n;
}

/* bison calls this when its stack is full */
static void parser_error(span *at, scanner *sc, ast **file, const char *message) {
    (void)file, (void)message;
    scan_limit(sc, *at, "expressions nest deeper", AST_MAX_DEPTH);
}

static bool continues(yysymbol_kind_t k) { return k >= YYSYMBOL_OR && k <= YYSYMBOL_PRIME; }

static void expect_add(expected *w, const char *name) {
    size_t used = strlen(w->list), n = strcspn(name, " ");
    bool word = name[0] == 'a' && name[n] == ' ';
    char item[40];
    snprintf(item, sizeof item, word ? "%.*s" : "'%.*s'", word ? 39 : (int)n, name);
    if (strstr(w->list, item) || strncmp(name, "end ", 4) == 0) return;
    snprintf(w->list + used, sizeof w->list - used, "%s%s", w->n++ ? "\n" : "", item);
}

static int yyreport_syntax_error(const yypcontext_t *ctx, scanner *sc, ast **file) {
    yysymbol_kind_t kinds[YYNTOKENS];
    expected want = {0};
    int n = yypcontext_expected_tokens(ctx, kinds, YYNTOKENS);
    (void)file;
    bool infix = false;
    for (int i = 0; i < n; i++) {
        want.expr = want.expr || kinds[i] == YYSYMBOL_TRUE;
        infix = infix || kinds[i] == YYSYMBOL_STAR;
    }
    /* operators are not listed where any operator could follow */
    for (int i = 0; i < n && !want.expr; i++)
        if (!infix || !continues(kinds[i])) expect_add(&want, yysymbol_name(kinds[i]));
    scan_unexpected(sc, &want);
    return 0;
}
