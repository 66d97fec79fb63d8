; Colours of CDL.
(comment) @comment
(doc) @comment.documentation
(str) @string
(number) @number
(bool) @boolean
(unit_name) @type

["use" "as"] @keyword.import
["fn"] @keyword.function
["if" "then" "else" "cases" "otherwise" "for" "where"] @keyword.control
["and" "or" "not" "in" "∈"] @keyword.operator
["let" "param" "model" "part" "dof" "history" "domain" "field" "at" "boundary" "obstacle" "rod" "shape" "kinetic" "potential"
 "dissipation" "force" "constraint" "when" "stop" "experiment" "run" "with" "sweep" "measure" "expect" "within" "plot"
 "against" "save"] @keyword
["true" "false"] @boolean

["+" "-" "*" "·" "/" "^" "==" "!=" "≠" "<" "<=" "≤" ">" ">=" "≥" "=" ".."] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," "." ":"] @punctuation.delimiter

(model name: (name) @type.definition)
(experiment name: (name) @type.definition)
(fn name: (name) @function)
(call (name) @function.call)
(param_item name: (name) @variable.parameter)
(dof_item name: (name) @variable)
(dof_item space: (name) @type)
(constraint name: (name) @label)
(part name: (name) @variable)
(bind name: (name) @variable)
(named name: (name) @property)
(block (set . (name) @property))
(member (name) @property .)
