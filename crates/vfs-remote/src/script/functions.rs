//! Shell function library of the scripts.
//!
//! The functions use builtins where possible: starting a process costs more than everything else in a script.
//!
//! All functions share these variables: `M` is the marker, `T` the end of the response, `ID` a name unique to the
//! script, `R` the configured root and `r` its real path (empty for `/`), `p` the directory at the end of a walk,
//! relative to the root, and `n` the name in that directory (`.` if the path is the directory itself). After a walk,
//! that directory is the working directory of the shell, which pins it like an open descriptor; so the following
//! commands operate on `./$n`.

mod common_change_functions;
mod remove_functions;
mod rename_copy_functions;
mod write_functions;

pub(crate) use self::common_change_functions::{AT_ONCE, CHANGE, STEP_BY_STEP};
pub(crate) use self::remove_functions::REMOVE;
pub(crate) use self::rename_copy_functions::TRANSFER;
pub(crate) use self::write_functions::PUT;

/// Beginning of every script. The text is the same for all scripts, as a shell may read it before the script is chosen.
pub(crate) const BEGIN: &str = r#"LC_ALL=C
TZ=UTC0
export LC_ALL TZ
unset CDPATH
set -f
IFS=' 	
'
ifs=$IFS
nl='
'
m=0 o= coarse=
say() { printf '%s' "$M$1"; }
tidy() { :; }
die() { tidy; printf '%s' "$M!$1$T"; exit 0; }
finish() { printf '%s' "$T"; exit 0; }
top() { cd -P -- "$R" 2>/dev/null || die noroot; r=${PWD%/}; }
# An entry that was removed meanwhile is not denied.
needs() { [ "$1" "./$n" ] || { [ -e "./$n" ] || die raced; die denied; }; }
into() {
  if [ -n "$q" ]; then q=$((q + 1))
  elif [ -d "./$n" ]; then
    cd -P "./$n" 2>/dev/null || { needs -x; die raced; }
  elif [ "$w" != x ] && [ -e "./$n" ]; then die notdir
  else
    case $w in
    x) q=1 ;;
    m*)
      if mkdir "./$n"; then m=$((m + 1)); else [ -d "./$n" ] || die os; fi
      cd -P "./$n" 2>/dev/null || die raced ;;
    *) die missing ;;
    esac
  fi
  p=$p/$n
}
# The path leads through a component that is no directory: fails, except in a walk of `resolve` (`x`), which reports it by `u`.
nowhere() {
  [ "$w" = x ] || { [ ! -e "./$n" ] || die notdir; die missing; }
  u=1
}
up() {
  if [ "$n" != . ]; then
    [ -z "$q" ] && [ -d "./$n" ] || nowhere
    n=.
  else
    [ -n "$p" ] || die escape
    [ "$m" -eq 0 ] || die missing
    # `q` counts the components below the last directory that exists.
    case $q in
    '') cd -P .. 2>/dev/null || die raced ;;
    1) q= ;;
    *) q=$((q - 1)) ;;
    esac
    p=${p%/*}
  fi
}
follow() {
  k=$((k + 1))
  [ "$k" -le 40 ] || die loop
  l=$(readlink "./$n" && printf x) || die os
  l=${l%"${nl}x"}
  case $l in /*) die escape ;; esac
}
walk() {
  w=$1 n=. p= k=0 q= u= d=
  shift
  while [ $# -gt 0 ]; do
    c=$1
    shift
    case $c in
    '' | .) continue ;;
    ..) up; continue ;;
    .vfs-tmp-*) die missing ;;
    esac
    [ "$n" = . ] || into
    n=$c
    if [ -z "$q" ] && [ -L "./$n" ]; then
      case $w$# in
      e0 | me0) ;;
      *)
        follow
        case $#$l in 0*/ | 0*/.) d=1 ;; esac
        n=.
        IFS=/
        set -- $l "$@"
        IFS=$ifs ;;
      esac
    fi
  done
  [ -z "$d" ] || [ -n "$q" ] || [ "$n" = . ] || [ -d "./$n" ] || nowhere
  [ -n "$q" ] || check_cwd
}
check_cwd() {
  c=$r$p
  [ "$PWD" = "${c:-/}" ] || [ "${#c}" -gt 3900 ] || die raced
}
none() {
  if [ -L "./$n" ]; then die raced
  elif [ -d "./$n" ]; then die isdir
  elif [ -e "./$n" ]; then die special
  else die missing
  fi
}
file() {
  [ "$n" != . ] && [ -f "./$n" ] && [ ! -L "./$n" ] || none
  needs -r
}
look() {
  if [ "$n" = . ]; then k=d
  elif [ -L "./$n" ]; then k=l
  elif [ -d "./$n" ]; then k=d
  elif [ -f "./$n" ]; then k=f
  elif [ -e "./$n" ]; then k=o
  else k=
  fi
}
facts() { say e; about "./$n" || die os; }
"#;

/// Function that reads blocks of 64 KiB from standard input: `blocks SKIP COUNT`. A read may return less than
/// requested, and a block counts only when it is full.
pub(crate) const BLOCKS_FULL: &str = r#"blocks() { dd bs=65536 skip="$1" count="$2" iflag=fullblock; }
"#;

/// Variant of [`BLOCKS_FULL`] for a `dd` without full blocks: `dd` only seeks to the offset at which `head` reads.
pub(crate) const BLOCKS_HEAD: &str = r#"blocks() { dd bs=65536 skip="$1" count=0 && head -c "$(($2 * 65536))"; }
"#;

/// Function that returns whether a file with the metadata `v` may have content after a number of blocks: `reaches
/// SKIP`. Some implementations of `dd` fail beyond the end. A file whose stated size is 0 may have content
/// nevertheless, but not 64 GiB.
pub(crate) const REACHES: &str = r#"reaches() {
  l=$1
  [ "$l" -gt 0 ] || return 0
  set -- ${v#*"|"}
  if [ "$3" -eq 0 ]; then [ "$l" -le 1048576 ]; else [ "$l" -le "$(($3 / 65536))" ]; fi
}
report_facts() {
  if [ "$1" -eq 0 ]; then facts
  else
    v=$(about "./$n") || die os
    say e
    printf '%s' "$v"
  fi
}
"#;

/// Function that reads a file through one descriptor: `fetch SKIP COUNT`, in blocks. `D` is the directory of the
/// shell's own descriptors.
pub(crate) const FETCH_BY_DESCRIPTOR: &str = r#"fetch() {
  file
  {
    report_facts "$1"
    [ "$D/3" -ef "./$n" ] || die again
    say c
    ! reaches "$1" || blocks "$1" "$2" <&3
  } 3<"./$n" || die os
}
"#;

/// Variant of [`FETCH_BY_DESCRIPTOR`] for a place without a directory of descriptors: prints the metadata of the file
/// before and after.
pub(crate) const FETCH_TWICE: &str = r#"fetch() {
  file
  report_facts "$1"
  say c
  ! reaches "$1" || blocks "$1" "$2" <"./$n" || die os
  facts
}
"#;
