#!/bin/bash
# The language server: each kind of request with arbitrary input, random edits, latency; the files for editors and shells.
# Long test: LSP_EDITS=10000 LSP_CHECK_EVERY=5 (and CDL of a build with --enable-sanitize).
. "${tests:?}/cli/common"
root=${srcdir:-${tests%/*}}
python=$(command -v python3 || command -v /usr/bin/python3) || { echo "ok lsp # SKIP no python3"; exit 0; }
client() { local rc; "$python" "$tests/lsp/client.py" "$@"; rc=$?; [ $rc -eq 0 ] || { [ $rc -eq 1 ] || echo "not ok lsp $1: exit $rc"; failed=1; }; }
ms=150                                          # 50 on an idle machine; the figures are printed
"$CDL" --version --json | grep -q '"sanitize": *true' && ms=3000
client answers "$CDL"
client protocol "$CDL"
LSP_CHECK_EVERY=${LSP_CHECK_EVERY:-4} client edits "$CDL" "${LSP_EDITS:-210}" "${LSP_SEED:-1}" "$root"/examples/*.cdl
client latency "$CDL" 1000 $ms

# the package of the extension for VS Code: its contents, used with the server
try "the package of the extension" 0 sh "$root/lang/editors/vscode/package.sh" cdl.vsix
"$python" - >list <<'PY'
import json, zipfile, xml.dom.minidom
z = zipfile.ZipFile("cdl.vsix")
xml.dom.minidom.parseString(z.read("extension.vsixmanifest")), xml.dom.minidom.parseString(z.read("[Content_Types].xml"))
about = json.loads(z.read("extension/package.json"))
for f in [about["main"], about["contributes"]["languages"][0]["configuration"], about["contributes"]["grammars"][0]["path"]]:
    z.read("extension/" + f[2:])
print("whole", z.testzip())
z.extractall("vsix")
PY
same "it holds what it names" "whole None" "$(cat list)"
node=$(command -v node) && { "$node" "$tests/lsp/extension.js" "$PWD/vsix/extension/extension.js" "$CDL" || failed=1; }
[ -n "$node" ] || echo "ok extension # SKIP no node"

# completion in bash
complete() {
    PATH=$(dirname "$CDL"):$PATH bash -c '. "$1"; shift; COMP_WORDS=(cdl "$@"); COMP_CWORD=$#; _cdl; echo "${COMPREPLY[@]}"' - \
        "$root/lang/editors/shell/bash/cdl" "$@"
}
if [ "$(basename "$CDL")" = cdl ]; then
    same "bash: commands" "lsp" "$(complete ls)"
    same "bash: options of a command" "--keep-going" "$(complete run --ke)"
    same "bash: stages" "jacobian" "$(complete show j)"
    same "bash: what is written" "fmu" "$(complete emit f)"
    for cmd in run view "emit c"; do
        # shellcheck disable=SC2086 # two words
        same "bash: files of $cmd" "ball.cdl" "$(complete $cmd ba)"
    done
fi
for shell in zsh fish; do
    command -v $shell >/dev/null || { echo "ok completion for $shell # SKIP no $shell"; continue; }
    file=$(echo "$root/lang/editors/shell/$shell"/*)
    try "completion for $shell is read" 0 $shell -n "$file"
done
if command -v fish >/dev/null && [ "$(basename "$CDL")" = cdl ]; then
    in_fish() { PATH=$(dirname "$CDL"):$PATH fish -N -c "source $root/lang/editors/shell/fish/cdl.fish; complete -C '$1'" | cut -f1 | paste -sd' '; }
    same "fish: commands" "lsp" "$(in_fish 'cdl ls')"
    same "fish: stages" "jacobian fmu" "$(in_fish 'cdl show j') $(in_fish 'cdl emit f')"
    same "fish: files" "ball.cdl" "$(in_fish 'cdl view bal')"
else
    echo "ok completion in fish # SKIP no fish"
fi
# the words in the editors' files are those of the language
words=$(sed -nE 's/^X\([A-Z_]+, *"([a-z]+)".*/\1/p' "$root/lang/syntax/keywords.def" | sort -u)
for f in emacs/cdl-mode.el; do                  # tests/unit/test_editors.c checks the others
    same "$f knows every word" "" "$(for w in $words; do grep -qwF -- "$w" "$root/lang/editors/$f" || echo "$w"; done)"
done
# Neovim with its default settings: an error is underlined
if command -v nvim >/dev/null; then
    printf 'model ball {\n    dof y = 1\n    constrant floor: y >= 0\n}\n' >wrong.cdl
    try "a file in Neovim" 0 timeout 20 nvim --headless --clean --cmd "set rtp^=$root/lang/editors/vim,$root/lang/editors/nvim" -c 'edit wrong.cdl' \
        -c 'lua vim.wait(9000, function() return #vim.diagnostic.get(0) > 0 end)' \
        -c 'lua for _, d in ipairs(vim.diagnostic.get(0)) do print(d.lnum + 1, d.message) end' -c 'qa!'
    has "what the server says of it" err "unknown statement 'constrant'"
else
    echo "ok a file in Neovim # SKIP no nvim"
fi
# Emacs: the mode, its colours, the columns of unindented lines
if command -v emacs >/dev/null; then
    printf '## A ball.\nmodel ball {\ndof y = 1\nfor i in 1..2 {\nparam a = 1\n}\n}\n' >mode.cdl
    try "a file in Emacs" 0 env HOME="$PWD" emacs -Q --batch -l "$root/lang/editors/emacs/cdl-mode.el" mode.cdl --eval '(progn
        (princ (format "%s\n" major-mode)) (font-lock-ensure)
        (goto-char (point-min)) (search-forward "model")
        (princ (format "%s %s\n" (get-text-property 5 (quote face)) (get-text-property (1- (point)) (quote face))))
        (indent-region (point-min) (point-max)) (princ (buffer-string)))'
    same "is in the mode of the language" "cdl-mode font-lock-doc-face font-lock-keyword-face" "$(head -2 out | paste -sd' ')"
    same "and indented" "0 0 4 4 8 4 0" "$(tail -n +3 out | sed -E 's/^( *).*/\1/' | awk '{ print length }' | paste -sd' ')"
else
    echo "ok a file in Emacs # SKIP no emacs"
fi
