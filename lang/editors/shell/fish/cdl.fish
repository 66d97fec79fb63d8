# Completion of cdl for fish.  Commands, options and stages are those that `cdl help` prints.
function __cdl_commands
    cdl help 2>/dev/null | string replace -rf '^(?:usage:)? +cdl ([a-z][a-z-]*|-e|--version).*' '$1'
end
function __cdl_options
    set -l cmd (commandline -opc)[2]
    cdl help $cmd 2>/dev/null | string match -ar -- '(?<=^|[ \[])--?[a-z][a-z-]*=?' | sort -u
end
function __cdl_stages
    cdl help (commandline -opc)[2] 2>/dev/null | string replace -rf '^usage: cdl [a-z]+ ([a-z|]+).*' '$1' | string split '|'
end
complete -c cdl -n 'test (count (commandline -opc)) -eq 1' -f -a '(__cdl_commands)'
complete -c cdl -n 'test (count (commandline -opc)) -ge 2; and string match -q -- "-*" (commandline -ct)' -f -a '(__cdl_options)'
complete -c cdl -n '__fish_seen_subcommand_from show emit; and test (count (commandline -opc)) -eq 2' -f -a '(__cdl_stages)'
complete -c cdl -n '__fish_seen_subcommand_from help; and test (count (commandline -opc)) -eq 2' -f -a '(__cdl_commands)'
complete -c cdl -n '__fish_seen_subcommand_from run check fmt show emit view' -k -xa '(__fish_complete_suffix .cdl)'
complete -c cdl -n '__fish_seen_subcommand_from repro' -k -xa '(__fish_complete_suffix .json)'
