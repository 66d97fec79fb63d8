" Vim syntax file for CDL, the contact description language.  Copy the folder vim/ into ~/.vim (or ~/.config/nvim).
if exists("b:current_syntax")
  finish
endif

syn keyword cdlDeclaration  use as fn let param model part dof history domain field at boundary obstacle rod shape
syn keyword cdlDeclaration  kinetic potential dissipation force constraint
syn keyword cdlStatement    when stop experiment run with sweep measure expect within plot against save
syn keyword cdlConditional  for where if then else cases otherwise
syn keyword cdlOperatorWord and or not in
syn keyword cdlBoolean      true false

syn match   cdlNumber   "\<\d\+\%(\.\d\+\)\?\%([eE][-+]\?\d\+\)\?\>"
syn match   cdlNumber   "\%(\.\)\@<!\.\d\+\%([eE][-+]\?\d\+\)\?\>"
syn match   cdlUnit     "\%(\d\s*\)\@<=\[\s*\%(1\|[A-Za-zµ°]\)[^],;]*\]"
syn match   cdlOperator "[-+*/^=<>≤≥≠∈·]\|!=\|\.\."
syn match   cdlPrime    "['′]\+"
syn region  cdlString   start=+"+ skip=+\\.+ end=+"+ oneline
syn match   cdlComment  "#.*$" contains=cdlTodo,@Spell
syn match   cdlDoc      "##.*$" contains=cdlTodo,@Spell
syn keyword cdlTodo     TODO FIXME contained

hi def link cdlDeclaration  Keyword
hi def link cdlStatement    Statement
hi def link cdlConditional  Conditional
hi def link cdlOperatorWord Operator
hi def link cdlBoolean      Boolean
hi def link cdlNumber       Number
hi def link cdlUnit         Type
hi def link cdlOperator     Operator
hi def link cdlPrime        Special
hi def link cdlString       String
hi def link cdlComment      Comment
hi def link cdlDoc          SpecialComment
hi def link cdlTodo         Todo

setlocal commentstring=#\ %s
let b:current_syntax = "cdl"
