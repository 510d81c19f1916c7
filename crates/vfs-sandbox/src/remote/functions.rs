//! The shell functions that scripts are made of. They use builtins wherever they can: a process costs more than all else.
//!
//! Variables that all of them share: `M` the marker, `R` the root as configured and `r` as it really is (empty for `/`), `p`
//! the directory that was walked to, relative to the root, and `n` the name in it (`.` where the path is that directory).
//! The shell stands in that directory, which it holds as a descriptor would be held; so what follows is done on `./$n`.

/// What every script begins with.
pub(super) const BEGIN: &str = r#"LC_ALL=C
TZ=UTC0
export LC_ALL TZ
unset CDPATH
set -f
IFS=' 	
'
ifs=$IFS
nl='
'
T="$M.$M"
t= s= u= m=0 o= coarse=
say() { printf '%s' "$M$1"; }
tidy() { :; }
die() { tidy; printf '%s' "$M!$1$T"; exit 0; }
finish() { printf '%s' "$T"; exit 0; }
top() { cd -P -- "$R" 2>/dev/null || die noroot; r=${PWD%/}; }
into() {
  if [ -n "$q" ]; then :
  elif [ -d "./$n" ]; then
    cd -P "./$n" 2>/dev/null || { [ -x "./$n" ] || die denied; die raced; }
  elif [ -e "./$n" ]; then die notdir
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
up() {
  if [ "$n" != . ]; then
    [ -n "$q" ] || [ -d "./$n" ] || { [ ! -e "./$n" ] || die notdir; [ "$w" = x ] || die missing; }
    n=.
  else
    [ -n "$p" ] || die escape
    [ "$m" -eq 0 ] || die missing
    [ -n "$q" ] || cd -P .. 2>/dev/null || die raced
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
  w=$1 n=. p= k=0 q=
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
        n=.
        IFS=/
        set -- $l "$@"
        IFS=$ifs ;;
      esac
    fi
  done
  [ -n "$q" ] || held
}
held() {
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
  [ -r "./$n" ] || die denied
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

/// Reading a file of which one descriptor is held: `fetch SKIP COUNT`, in blocks of 64 KiB. `D` is where the shell's own
/// descriptors are.
pub(super) const FETCH_HELD: &str = r#"fetch() {
  file
  {
    facts
    [ "$D/3" -ef "./$n" ] || die again
    say c
    dd bs=65536 skip="$1" count="$2" <&3
  } 3<"./$n" || die os
}
"#;

/// The same where the shell cannot look at its descriptors: what the file is, is said before and after.
pub(super) const FETCH_TWICE: &str = r#"fetch() {
  file
  facts
  say c
  dd bs=65536 skip="$1" count="$2" <"./$n" || die os
  facts
}
"#;

/// Changing an entry: `t` is what holds it, and what becomes its content; `u` is content that came before it was held.
pub(super) const CHANGE: &str = r#"tidy() {
  set +C
  [ -z "$t$u$h" ] || rm -rf ${t:+"./$t"} ${u:+"./$u"} ${h:+"$h"}
  t= u= h=
  while [ "$m" -gt 0 ] && cd -P .. && rmdir "./${p##*/}" 2>/dev/null; do
    p=${p%/*}
    m=$((m - 1))
  done
}
trap 'tidy; exit 1' HUP INT TERM
h=
nap() { sleep 0.02 2>/dev/null || sleep 1; }
claim() {
  i=0 j=0
  set -C
  until printf '' >"$1"; do
    set +C
    if [ -e "$1" ] || [ -L "$1" ]; then
      i=$((i + 1))
      if [ "$((i % 50))" -eq 1 ] && [ -n "$(find "$1" -prune -mmin +1)" ]; then
        mv -f "$1" "$1-$ID" && rm -rf "$1-$ID"
      elif [ "$i" -gt "$2" ]; then die busy
      else nap
      fi
    else
      j=$((j + 1))
      [ "$j" -le 3 ] || die os
    fi
    set -C
  done
  set +C
}
lock() {
  c=.vfs-tmp-r-$n
  [ "${#c}" -le 200 ] || c=.vfs-tmp-r-${#n}-
}
hold() { lock; claim "./$c" "$W"; t=$c; }
changed() { x=${1#*"|"}; x=${x#*"|"}; x=${x%%"|"*}; }
keep() {
  set -- ${o%%"|"*}
  [ "$3:$4" = "$OWNER" ] || chown "$3:$4" "./$s" 2>/dev/null
  [ "$2" = "$PERM" ] || chmod "$2" "./$s" || die os
}
tell() {
  v=$(about "./$n") || die os
  if [ -n "$o" ] && [ -z "$coarse" ]; then
    changed "$o"
    c=$x
    changed "$v"
    while [ "$c" = "$x" ]; do
      touch -c "./$n" || die os
      v=$(about "./$n") || die os
      changed "$v"
    done
  fi
  say e
  printf '%s' "$v"
}
over() { [ -w "./$n" ] || die denied; mv -f $mvt "./$s" "./$n" || die os; }
fresh() {
  if [ -n "$mvn" ]; then mv $mvn "./$s" "./$n" && [ ! -e "./$s" ] && return
  else
    ln "./$s" "./$n" && { rm -f "./$s"; return; }
  fi
  [ ! -e "./$n" ] && [ ! -L "./$n" ] || die exists
  [ -z "$mvn" ] || die os
  mv -f $mvt "./$s" "./$n" || die os
}
release() { [ -z "$t$h" ] || rm -f ${t:+"./$t"} ${h:+"$h"} || die os; t= h=; }
"#;

/// Writing a file whose content `body` prints, or `u` has: `put new`, `put over`, `put if EXPECTED` or `put add MOST`.
pub(super) const PUT: &str = r#"target() {
  look
  case $k in
  d) die isdir ;;
  o) die special ;;
  l) if [ "$1" = new ]; then die exists; else die raced; fi ;;
  f) [ "$1" != new ] || die exists ;;
  esac
}
upload() {
  c=.vfs-tmp-u-$ID
  set -C
  cat >"./$c" || { set +C; u=$c; die os; }
  set +C
  u=$c
  x=$(wc -c <"./$u") || die os
  [ "$((x))" -eq "$1" ] || die cut
}
put() {
  target "$1"
  [ -z "$k" ] || [ -w "./$n" ] || die denied
  if [ "$1" = if ] && [ -z "$k" ]; then die gone; fi
  hold
  target "$1"
  s=$t
  if [ -n "$u" ]; then s=$u; else [ "$1" = add ] && [ -n "$k" ] || body >"./$t" || die os; fi
  if [ -n "$k" ]; then
    o=$(about "./$n") || die raced
    case $1 in
    if) [ "${o#*"|"}" = "$2" ] || { say v; printf '%s' "$o"; die conflict; } ;;
    add)
      y=$2 x=${o#*"|"}
      set -- ${x%%"|"*}
      [ "$3" -le "$y" ] || die large
      s=$t
      if [ -n "$u" ]; then cat "./$n" "./$u" >"./$t"; else { cat "./$n" && body; } >"./$t"; fi || die os
      v=$(about "./$n") || die raced
      [ "$v" = "$o" ] || die raced ;;
    esac
    keep
    over
    x=0
  else
    o=
    case $1 in
    if) die gone ;;
    new) fresh ;;
    *) mv -f $mvt "./$s" "./$n" || die os ;;
    esac
    x=1
  fi
  if [ "$s" = "$t" ]; then t=; else u=; fi
  [ -z "$t$u" ] || rm -f ${t:+"./$t"} ${u:+"./$u"} || die os
  t= u= m=0
  say k
  printf '%s' "$x"
  tell
}
"#;

/// Removing what `walk e` found: `remove file EXPECTED`, `remove tree` or `remove empty`.
pub(super) const REMOVE: &str = r#"remove() {
  [ "$n" != . ] || die isdir
  look
  case $k$1 in
  '' | file | tree | empty) die missing ;;
  o*) die special ;;
  dfile) die isdir ;;
  dempty) ;;
  *empty) die notdir ;;
  esac
  hold
  x=$k
  look
  [ "$x" = "$k" ] || die raced
  case $k$1 in
  dempty)
    if ! rmdir "./$n"; then
      cd -P "./$n" 2>/dev/null || die raced
      find . ! -name . -prune -name '.vfs-tmp-*' -mmin +60 -exec rm -rf {} +
      x=$(find . ! -name . -prune ! -name '.vfs-tmp-*' -exec printf x \;)
      cd -P .. 2>/dev/null || die raced
      [ -z "$x" ] || die notempty
      rmdir "./$n" || die os
    fi
    release ;;
  dtree) prune ;;
  *)
    if [ "$k" = f ]; then
      o=$(about "./$n") || die raced
      [ -z "$2" ] || [ "${o#*"|"}" = "$2" ] || { say v; printf '%s' "$o"; die conflict; }
      [ -w "./$n" ] || die denied
    elif [ -n "$2" ]; then die linked
    fi
    rm -f "./$n" || die os
    release
    if [ -n "$o" ] && [ -z "$coarse" ]; then
      v=$(about .) || die os
      changed "$o"
      c=$x
      changed "$v"
      [ "$c" != "$x" ] || nap
    fi
    say k
    printf 1 ;;
  esac
}
flatten() {
  x=$(find "./$c" -path "./$c/*/*/*/*/*/*/*/*" -type d -prune -exec sh -c '
    to=$1
    shift
    for d do mv "$d" "$to-$#" && printf x; shift; done' sh "./$c/moved-up-$i" {} +)
  [ -n "$x" ]
}
# Where paths are too long for the tools, the deep parts of what is removed are moved up first.
prune() {
  [ -z "$2" ] || die linked
  c=.vfs-tmp-d-$ID
  mv -f $mvt "./$n" "./$c" || die os
  release
  i=0
  while :; do
    x=$(find "./$c" ! -type d -exec sh -c 'printf "%s " "$#"' sh {} + 2>&1) && break
    i=$((i + 1))
    case $x in
    *"ame too long"*) flatten || break ;;
    *) break ;;
    esac
  done
  rm -rf "./$c"
  say k
  printf '%s' "$x"
  [ ! -e "./$c" ] || {
    [ -e "./$n" ] || mv -f $mvt "./$c" "./$n"
    die os
  }
}
"#;

/// Moving and copying: `origin`, then a walk to the target, then `move` or `copy`, with `new` or `over`.
pub(super) const TRANSFER: &str = r#"origin() {
  look
  case $k in '') die missing ;; o) die special ;; esac
  [ "$n" != . ] || [ -n "$p" ] || die inside
  if [ "$n" = . ]; then sp=$p; else sp=$p/$n; fi
  sd=$p sn=$n sk=$k src=$r$sp
  cd -P -- "${r:-/}" 2>/dev/null || die noroot
  say t
}
ends() {
  [ "$n" != . ] || die isdirto
  [ "$p/$n" != "$sp" ] || die same
  case $p/ in "$sp"/*) die inside ;; esac
}
place() {
  look
  [ -n "$k" ] || return 0
  [ "$1" = over ] || die existsto
  case $sk$k in
  dd) ;;
  d*) die notdirto ;;
  ?d) die isdirto ;;
  ?o) die special ;;
  ?f) [ -w "./$n" ] || die denied ;;
  esac
}
vacate() {
  [ "$sk$k" != dd ] || rmdir "./$n" 2>/dev/null || die notempty
}
move() {
  ends
  place "$1"
  hold
  n0=$n n=$sn
  lock
  n=$n0
  if [ "$sd/$c" != "$p/$t" ]; then
    claim "$r$sd/$c" 10
    h=$r$sd/$c
  fi
  place "$1"
  [ -e "$src" ] || [ -L "$src" ] || die missing
  vacate
  if [ -z "$k" ] && [ -n "$mvn" ]; then
    mv $mvn "$src" "./$n" && [ ! -e "$src" ] && [ ! -L "$src" ] || {
      [ ! -e "./$n" ] && [ ! -L "./$n" ] || die existsto
      die os
    }
  else
    mv -f $mvt "$src" "./$n" || { [ "$sk$k" != dd ] || mkdir "./$n"; die os; }
  fi
  m=0
  say k
  if [ -n "$k" ]; then printf 1; else printf 0; fi
  release
}
copy() {
  ends
  place "$1"
  c=.vfs-tmp-u-$ID
  if [ "$sk" = d ]; then
    [ -z "$(find "$src" ! -type d ! -type f ! -type l -exec echo x \;)" ] || die special
    u=$c
    cp -RP "$src" "./$u" || die os
    find "./$u" -name '.vfs-tmp-*' ! -name "$u" -prune -exec rm -rf {} +
    below "./$u" || die os
  else
    [ -r "$src" ] || die denied
    u=$c
    cp "$src" "./$u" || die os
  fi
  hold
  place "$1"
  vacate
  s=$u
  if [ "$sk" = d ]; then
    mv -f $mvt "./$s" "./$n" || { [ -z "$k" ] || mkdir "./$n"; die os; }
  elif [ -n "$k" ]; then
    o=$(about "./$n") || die raced
    keep
    over
  else fresh
  fi
  u=
  m=0
  say k
  if [ -n "$k" ]; then printf 1; else printf 0; fi
  release
  [ "$sk" = d ] || tell
}
"#;
