//! Shell function library of the scripts.
//!
//! The functions use builtins where possible: starting a process costs more than everything else in a script.
//!
//! Variables that all of them share: `M` the marker, `T` the end of the answer, `ID` a name that no other script has, `R`
//! the root as configured and `r` as it really is (empty for `/`), `p` the directory that was walked to, relative to the
//! root, and `n` the name in it (`.` where the path is that directory).
//! The shell stands in that directory, which it holds open as a descriptor would; so what follows is done on `./$n`.

mod changing;
mod moving;
mod removing;

pub(crate) use self::changing::{AT_ONCE, CHANGE, PUT, STEP_BY_STEP};
pub(crate) use self::moving::TRANSFER;
pub(crate) use self::removing::REMOVE;

/// Beginning of every script. All of it is the same for all scripts, as a shell may have read it before the script is there.
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
# An entry that is gone by now is not denied.
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

/// Reading blocks of 64 KiB from standard input: `blocks SKIP COUNT`. A read may return less than requested, and a
/// block counts only when it is full.
pub(crate) const BLOCKS_FULL: &str = r#"blocks() { dd bs=65536 skip="$1" count="$2" iflag=fullblock; }
"#;

/// The same where `dd` has no full blocks: it only goes to the place from which `head` reads.
pub(crate) const BLOCKS_HEAD: &str = r#"blocks() { dd bs=65536 skip="$1" count=0 && head -c "$(($2 * 65536))"; }
"#;

/// Whether a file whose facts are `v` may hold anything behind so many blocks: `reaches SKIP`. Beyond the end some `dd`
/// fail. What says that it is empty may hold something all the same, but not 64 GiB.
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

/// Reading a file through one descriptor: `fetch SKIP COUNT`, in blocks. `D` is where the shell's own
/// descriptors are.
pub(crate) const FETCH_HELD: &str = r#"fetch() {
  file
  {
    report_facts "$1"
    [ "$D/3" -ef "./$n" ] || die again
    say c
    ! reaches "$1" || blocks "$1" "$2" <&3
  } 3<"./$n" || die os
}
"#;

/// The same where the shell cannot look at its descriptors: the facts of the file are printed before and after.
pub(crate) const FETCH_TWICE: &str = r#"fetch() {
  file
  report_facts "$1"
  say c
  ! reaches "$1" || blocks "$1" "$2" <"./$n" || die os
  facts
}
"#;
