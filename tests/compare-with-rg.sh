#!/usr/bin/env bash
# Compares `vfs grep` with ripgrep: both must find the same lines.
#
# usage: tests/compare-with-rg.sh [DIRECTORY]
#
# A line that is not UTF-8 is a difference: vfs shows it lossily.
#
# Without a directory it looks for the sources of Debian's linux-source-6.1, unpacked. RG and VFS name the programs; by
# default `rg` of the PATH, and the release build of this workspace.
set -euo pipefail

workspace=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rg=${RG:-rg}
if ! command -v "$rg" >/dev/null; then
    echo "not run: rg not found (set RG, or install ripgrep)"
    exit 0
fi
directory=${1:-}
if [[ -z $directory ]]; then
    for candidate in /usr/src/linux-source-6.1 "$HOME/linux-source-6.1"; do
        [[ -d $candidate ]] && directory=$candidate
    done
    if [[ -z $directory ]]; then
        echo "not run: no directory given, and no sources of linux-source-6.1 found"
        exit 0
    fi
fi
vfs=${VFS:-}
if [[ -z $vfs ]]; then
    cargo build --quiet --release --manifest-path "$workspace/Cargo.toml" -p vfs-cli
    vfs=${CARGO_TARGET_DIR:-$workspace/target}/release/vfs
fi
rg=$(command -v "$rg")
vfs=$(realpath "$(command -v "$vfs")")
cd "$directory"

scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
export LC_ALL=C
differences=0

# What both programs have to say the same way: every line with path and number, in any order, and nothing from outside of
# the directory, which vfs cannot see: no settings, and no ignore files of the user or of the directories above.
rg_flags=(--no-config --no-ignore-global --no-ignore-parent --no-heading --with-filename --line-number --color=never)
# vfs reads .gitignore without a repository, too, but not one that would leave nothing: Debian's kernel sources have such a
# file, and it speaks of the packagers' repository. There rg is asked as outside of a repository.
if [[ -n $("$rg" "${rg_flags[@]}" --no-require-git --files </dev/null 2>/dev/null | head -n 1) ]]; then
    rg_flags+=(--no-require-git)
else
    echo "note: the .gitignore here excludes everything, so rg is run without --no-require-git"
fi

# search OUTPUT PROGRAM ARGUMENT...: writes what PROGRAM finds; an exit status of 1 only says that there is nothing.
search() {
    local output=$1 status=0
    shift
    "$@" >"$output" 2>"$scratch/messages" </dev/null || status=$?
    # To rg it is a failure, too, that a type or glob leaves it no files.
    if ((status > 1)) && ! grep --quiet 'No files were searched' "$scratch/messages"; then
        echo "failed with status $status: $*" >&2
        cat "$scratch/messages" >&2
        exit 2
    fi
}

# compare NAME VFS_ARGUMENTS -- RG_ARGUMENTS
compare() {
    local name=$1 for_vfs=() start
    shift
    while [[ $1 != -- ]]; do
        for_vfs+=("$1")
        shift
    done
    shift
    search "$scratch/vfs.raw" "$vfs" grep "${for_vfs[@]}"
    search "$scratch/rg.raw" "$rg" "${rg_flags[@]}" "$@"
    # The group separator of context tells nothing that the line numbers do not.
    sed -e '/^--$/d' -e 's|^/||' "$scratch/vfs.raw" | sort >"$scratch/vfs"
    sed -e '/^--$/d' -e 's/\r$//' "$scratch/rg.raw" | sort >"$scratch/rg"
    if cmp --silent "$scratch/vfs" "$scratch/rg"; then
        printf 'ok    %9d lines  %s\n' "$(wc -l <"$scratch/rg")" "$name"
    else
        printf 'diff  %9d lines  %s\n' "$(wc -l <"$scratch/rg")" "$name"
        diff "$scratch/rg" "$scratch/vfs" | head -n 10 || true
        differences=$((differences + 1))
    fi
}

compare 'a literal'                        'EXPORT_SYMBOL_GPL' --                   -F 'EXPORT_SYMBOL_GPL'
compare 'a literal of signs'               'if (!(x' --                             -F 'if (!(x'
compare 'a rare literal'                   'init_uevent_argv' --                    -F 'init_uevent_argv'
compare 'an absent literal'                'no such text anywhere, is there' --     -F 'no such text anywhere, is there'
compare 'a very common literal'            'the' --                                 -F 'the'
compare 'a regex with a literal prefix'    -E 'struct \w+_ops ' --                  'struct \w+_ops '
compare 'a regex with a literal suffix'    -E '[A-Z]+_SUSPEND' --                   '[A-Z]+_SUSPEND'
compare 'a regex without a literal'        -E '^\s{16}\w{20,}\(\w{5}\)' --          '^\s{16}\w{20,}\(\w{5}\)'
compare 'a regex with anchors'             -E '^return .*;$' --                     '^return .*;$'
compare 'alternatives'                     -E 'ENOMEM|EFAULT|ETIMEDOUT' --          'ENOMEM|EFAULT|ETIMEDOUT'
compare 'letters beyond ASCII'             -E '\p{Greek}' --                        '\p{Greek}'
compare 'any case (-i)'                    -i 'fixme' --                            -i -F 'fixme'
compare 'smart case (-S)'                  -S 'Fixme' --                            -S -F 'Fixme'
compare 'whole words (-w)'                 -w 'spin' --                             -w -F 'spin'
compare 'several lines (-U)'               -U -E 'goto out;\n\s*\}\n\s*else' --     -U --multiline-dotall 'goto out;\n\s*\}\n\s*else'
compare 'any character over lines (-U)'    -U -E 'MODULE_LICENSE\("GPL"\);.MODULE_ALIAS' -- -U --multiline-dotall 'MODULE_LICENSE\("GPL"\);.MODULE_ALIAS'
compare 'a file type (-t)'                 -t make 'obj-y' --                       -t make -F 'obj-y'
compare 'a glob (-g)'                      -g '*.rst' 'kernel' --                   -g '*.rst' -F 'kernel'
compare 'a glob with a path (-g)'          -g 'drivers/net/**/*.h' 'u64' --         -g 'drivers/net/**/*.h' -F 'u64'
compare 'a glob that leaves out (-g)'      -g '!*.c' 'mutex_lock' --                -g '!*.c' -F 'mutex_lock'
compare 'hidden files (--hidden)'          --hidden 'linux' --                      --hidden -F 'linux'
compare 'ignored files (--no-ignore)'      --no-ignore 'vmlinux' --                 --no-ignore -F 'vmlinux'
compare 'context (-C)'                     -C 2 'kmem_cache_create' --              -C 2 -F 'kmem_cache_create'
compare 'context before and after (-B -A)' -B 1 -A 3 'panic_timeout' --             -B 1 -A 3 -F 'panic_timeout'
compare 'the other lines (-v)'             -v -E -g 'Kconfig' '[a-z]' --            -v -g 'Kconfig' '[a-z]'

if ((differences > 0)); then
    echo "$differences patterns differ"
    exit 1
fi
