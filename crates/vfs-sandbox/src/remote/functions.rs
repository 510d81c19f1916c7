//! The shell functions that scripts are made of. They use builtins wherever they can: a process costs more than all else.
//!
//! Variables that all of them share: `M` the marker, `T` the end of the answer, `ID` a name that no other script has, `R`
//! the root as configured and `r` as it really is (empty for `/`), `p` the directory that was walked to, relative to the
//! root, and `n` the name in it (`.` where the path is that directory).
//! The shell stands in that directory, which it holds as a descriptor would be held; so what follows is done on `./$n`.

/// What every script begins with. Nothing of it is of one script only, as a shell may have read it before the script is there.
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
m=0 o= coarse=
say() { printf '%s' "$M$1"; }
tidy() { :; }
die() { tidy; printf '%s' "$M!$1$T"; exit 0; }
finish() { printf '%s' "$T"; exit 0; }
top() { cd -P -- "$R" 2>/dev/null || die noroot; r=${PWD%/}; }
# What is gone by now is denied to nobody.
needs() { [ "$1" "./$n" ] || { [ -e "./$n" ] || die raced; die denied; }; }
into() {
  if [ -n "$q" ]; then :
  elif [ -d "./$n" ]; then
    cd -P "./$n" 2>/dev/null || { needs -x; die raced; }
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

/// Reading blocks of 64 KiB from standard input: `blocks SKIP COUNT`. A read may give less than was asked for, and a
/// block counts only when it is full.
pub(super) const BLOCKS_FULL: &str = r#"blocks() { dd bs=65536 skip="$1" count="$2" iflag=fullblock; }
"#;

/// The same where `dd` does not know full blocks: it only goes to the place from which `head` reads.
pub(super) const BLOCKS_HEAD: &str = r#"blocks() { dd bs=65536 skip="$1" count=0 && head -c "$(($2 * 65536))"; }
"#;

/// Whether a file whose facts are `v` may hold anything behind so many blocks: `reaches SKIP`. Beyond the end some `dd`
/// fail. What says that it is empty may hold something all the same, but not 64 GiB.
pub(super) const REACHES: &str = r#"reaches() {
  l=$1
  [ "$l" -gt 0 ] || return 0
  set -- ${v#*"|"}
  if [ "$3" -eq 0 ]; then [ "$l" -le 1048576 ]; else [ "$l" -le "$(($3 / 65536))" ]; fi
}
told() {
  if [ "$1" -eq 0 ]; then facts
  else
    v=$(about "./$n") || die os
    say e
    printf '%s' "$v"
  fi
}
"#;

/// Reading a file of which one descriptor is held: `fetch SKIP COUNT`, in blocks. `D` is where the shell's own
/// descriptors are.
pub(super) const FETCH_HELD: &str = r#"fetch() {
  file
  {
    told "$1"
    [ "$D/3" -ef "./$n" ] || die again
    say c
    ! reaches "$1" || blocks "$1" "$2" <&3
  } 3<"./$n" || die os
}
"#;

/// The same where the shell cannot look at its descriptors: what the file is, is said before and after.
pub(super) const FETCH_TWICE: &str = r#"fetch() {
  file
  told "$1"
  say c
  ! reaches "$1" || blocks "$1" "$2" <"./$n" || die os
  facts
}
"#;

/// Changing an entry, which is done by whoever holds its lock `t`: a file in which its own `ID` stands. `g` is the lock
/// of another entry, `s` what takes the entry's place, `u` and `h` content that waits for it, here and anywhere, and `b`
/// what says that a lock is being broken, `a` what tells how old things seem, and `y` the facts of `s` before it took the
/// entry's place.
///
/// A lock that is older than a minute is another's no more. Only one takes it away at a time, who looks at its age again;
/// and as its owner may only have been slow, whoever changes something looks right before whether it still holds its
/// lock.
pub(super) const CHANGE: &str = r#"t= g= s= u= h= a= b= y=
owned() { IFS= read -r l <"$1" && [ "$l" = "$ID" ]; } 2>/dev/null
mine() { owned "./$t" || die raced; }
release() {
  [ -z "$t" ] || owned "./$t" || t=
  [ -z "$g" ] || owned "$g" || g=
  [ -z "$t$g$s$u$h" ] || rm -rf ${t:+"./$t"} ${g:+"$g"} ${s:+"./$s"} ${u:+"./$u"} ${h:+"$h"}
  t= g= s= u= h=
}
tidy() {
  set +C
  [ -z "$a$b" ] || rm -rf ${a:+"$a"} ${b:+"$b"}
  a= b=
  release
  while [ "$m" -gt 0 ] && cd -P .. && rmdir "./${p##*/}" 2>/dev/null; do
    p=${p%/*}
    m=$((m - 1))
  done
}
guard() { trap 'tidy; exit 1' HUP INT TERM; }
guard
nap() { sleep 0.02 2>/dev/null || sleep 1; }
old() { [ -n "$(find "$1" -prune -mmin "+$2" 2>/dev/null)" ]; }
# As old as a thing seems that is made now, so far is the clock of the file server behind, which is no age.
outlive() {
  old "$1" 1 || return 0
  e=${1%/*}/.vfs-tmp-b${1##*/.vfs-tmp-r}
  a=${1%/*}/.vfs-tmp-u-$ID-age x=1
  printf '' >"$a" || return 0
  while old "$a" "$x"; do x=$((x * 2)); done
  # It may seem nearly as old as that, and another lock is to have its minute.
  x=$((x + 1))
  if mkdir "$e" 2>/dev/null; then
    b=$e
    ! old "$1" "$x" || rm -rf "$1"
    rmdir "$b"
    b=
  elif old "$e" "$x"; then rmdir "$e"
  fi
  rm -f "$a"
  a=
}
claim() {
  i=0 j=0
  set -C
  until printf '' >"$1"; do
    set +C
    if [ -e "$1" ] || [ -L "$1" ]; then
      # Who is often just too late to see a lock that goes has no failure.
      i=$((i + 1)) j=0
      [ "$((i % 50))" -ne 1 ] || outlive "$1"
      [ "$i" -le "$2" ] || die busy
      nap
    else
      j=$((j + 1))
      [ "$j" -le 3 ] || die os
    fi
    set -C
  done
  set +C
  printf '%s\n' "$ID" >"$1" || { rm -f "$1"; die os; }
}
lock() {
  c=.vfs-tmp-r-$n
  [ "${#c}" -le 200 ] || c=.vfs-tmp-r-${#n}-
}
hold() { lock; t=$c; claim "./$t" "$W"; }
content() { x=${1#*"|"}; x=${x%%"|"*}; }
changed() { x=${1#*"|"}; x=${x#*"|"}; x=${x%%"|"*}; }
keep() {
  set -- ${o%%"|"*}
  [ "$3:$4" = "$OWNER" ] || chown "$3:$4" "./$s" 2>/dev/null
  [ "$2" = "$PERM" ] || chmod "$2" "./$s" || die os
}
# Under the lock, so that the version that is told is the one that was made.
tell() {
  owned "./$t" || die outrun
  ! told_at_once || return 0
  v=$(about "./$n") || die outrun
  if [ -n "$o" ] && [ -z "$coarse" ]; then
    changed "$o"
    c=$x
    changed "$v"
    while [ "$c" = "$x" ]; do
      touch -c "./$n" || die outrun
      v=$(about "./$n") || die outrun
      changed "$v"
    done
  fi
  owned "./$t" || die outrun
  if [ -n "$y" ]; then
    content "$y"
    c=$x
    content "$v"
    [ "$c" != "$x" ] || say w
  fi
  say e
  printf '%s' "$v"
}
over() {
  needs -w
  mine
  mv -f $mvt "./$s" "./$n" || die os
  s=
}
fresh() {
  mine
  if [ -n "$mvn" ]; then mv $mvn "./$s" "./$n" && [ ! -e "./$s" ] && { s=; return; }
  else
    ln "./$s" "./$n" && { rm -f "./$s"; s=; return; }
  fi
  [ ! -e "./$n" ] && [ ! -L "./$n" ] || die exists
  [ -z "$mvn" ] || die os
  mv -f $mvt "./$s" "./$n" || die os
  s=
}
"#;

/// Several steps of a change by one process, where `find` prints facts: `told_at_once` tells what was written and gives the lock
/// back; `put_at_once MODE EXPECTED CHANGED TESTS` begins with putting `s` in the place of a file for which the tests hold and
/// which is as new files are. What is told has to be newer than what was there; else the lock stays, and the rest is done
/// step by step.
pub(super) const AT_ONCE: &str = r#"put_at_once() {
  # It would stand for a path.
  case $n in *"{}"*) return 1 ;; esac
  c=$3
  shift 3
  mine
  # What a file is the same as is decided before anything is moved.
  v=$(find "./$n" ".//$n" "./$t" -maxdepth 0 \( -name '.vfs-tmp-*' -samefile "./$t" -delete -printf l -o \
    -path './/*' \( -samefile "./$s" ! -newer "./$s" -newerct "@$c" -printf "$F" -o -quit \) -o \
    -type f -perm "$PERM" -uid "${OWNER%:*}" -gid "${OWNER#*:}" "$@" -exec mv -f $mvt "./$s" "./$n" \; -printf m -o -quit \))
  case $v in
  m*) s= v=${v#m} ;;
  *) return 1 ;;
  esac
  say k
  printf 0
  case $v in
  '') o="||$c"; tell ;;
  *'|' | *'|l')
    [ "$v" = "${v%l}" ] || t=
    say w
    say e
    printf '%s' "${v%l}" ;;
  *) die outrun ;;
  esac
  release
}
told_at_once() {
  c=-true
  if [ -n "$o" ]; then
    changed "$o"
    c="-newerct @$x"
  fi
  v=$(find "./$n" "./$t" ${u:+"./$u"} -maxdepth 0 \( -name '.vfs-tmp-u-*' -delete -o \
    -name '.vfs-tmp-*' \( -samefile "./$t" -delete -printf l -o -quit \) -o $c -printf "$F" -o -quit \))
  case $v in
  '') return 1 ;;
  *'|l') t= v=${v%l} ;;
  *) owned "./$t" || die outrun ;;
  esac
  [ -e "./$u" ] || u=
  say e
  printf '%s' "$v"
}
"#;

/// The same where `find` cannot: all is done step by step.
pub(super) const STEP_BY_STEP: &str = r#"put_at_once() { return 1; }
told_at_once() { return 1; }
"#;

/// Writing a file whose content `body` prints, or `u` has: `put new`, `put over`, `put if EXPECTED` or `put add MOST`; behind
/// `put over ANYTHING` and `put if EXPECTED` may stand what `put_at_once` takes.
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
  u=.vfs-tmp-u-$ID
  cat >"./$u" || die os
  x=$(wc -c <"./$u") || die os
  [ "$((x))" -eq "$1" ] || die cut
}
put() {
  target "$1"
  [ -z "$k" ] || needs -w
  if [ "$1" = if ] && [ -z "$k" ]; then die gone; fi
  hold
  target "$1"
  s=$u u=
  if [ -z "$s" ]; then
    s=.vfs-tmp-u-$ID
    body >"./$s" || die os
  fi
  if [ -n "$k" ]; then
    if [ $# -gt 2 ] && put_at_once "$@"; then return; fi
    if [ -n "$coarse" ]; then o=$(about "./$n") || die raced
    else
      y=$(about "./$n" "./$s") || die raced
      o=${y%%"$nl"*} y=${y#*"$nl"}
    fi
    case $1 in
    if) [ "${o#*"|"}" = "$2" ] || { say v; printf '%s' "$o"; die conflict; } ;;
    add)
      c=$2 x=${o#*"|"} y=
      set -- ${x%%"|"*}
      [ "$3" -le "$c" ] || die large
      u=$s s=$s-all
      cat "./$n" "./$u" >"./$s" || die os
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
    *) mine; mv -f $mvt "./$s" "./$n" || die os; s= ;;
    esac
    x=1
  fi
  m=0
  say k
  printf '%s' "$x"
  tell
  release
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
    mine
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
      needs -w
    elif [ -n "$2" ]; then die linked
    fi
    mine
    rm -f "./$n" || die os
    say k
    printf 1
    release
    # What is written here next must not have the times of what is gone.
    if [ -n "$o" ] && [ -z "$coarse" ] && v=$(about .); then
      changed "$o"
      c=$x
      changed "$v"
      [ "$c" != "$x" ] || nap
    fi ;;
  esac
}
flatten() {
  x=$(find "./$c" -path "./$c/*/*/*/*/*/*/*/*" -type d -prune -exec sh -c '
    to=$1
    shift
    for d do mv "$d" "$to-$#" && printf x; shift; done' sh "./$c/moved-up-$i" {} +)
  [ -n "$x" ]
}
# Where paths are too long for the tools, the deep parts of what is removed are moved up first. What is left of a tree
# whose removal is interrupted stands where it stood.
prune() {
  [ -z "$2" ] || die linked
  c=.vfs-tmp-d-$ID
  mine
  trap '[ -e "./$n" ] || [ ! -e "./$c" ] || mv -f $mvt "./$c" "./$n"; tidy; exit 1' HUP INT TERM
  mv -f $mvt "./$n" "./$c" || die os
  release
  # Whoever looks for what was left behind sees that this was not.
  touch -c "./$c"
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
  [ ! -e "./$c" ] || {
    [ -e "./$n" ] || mv -f $mvt "./$c" "./$n"
    die os
  }
  say k
  printf '%s' "$x"
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
  ?f) needs -w ;;
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
    g=$r$sd/$c
    claim "$g" 10
  fi
  place "$1"
  [ -e "$src" ] || [ -L "$src" ] || die missing
  mine
  [ -z "$g" ] || owned "$g" || die raced
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
  s=.vfs-tmp-u-$ID
  if [ "$sk" = d ]; then
    [ -z "$(find "$src" ! -type d ! -type f ! -type l -exec echo x \;)" ] || die special
    cp -RP "$src" "./$s" || die os
    find "./$s" -name '.vfs-tmp-*' ! -name "$s" -prune -exec rm -rf {} +
    below "./$s" || die os
  else
    [ -r "$src" ] || { [ -e "$src" ] || die missing; die denied; }
    cp "$src" "./$s" || die os
  fi
  hold
  place "$1"
  mine
  vacate
  if [ "$sk" = d ]; then
    mv -f $mvt "./$s" "./$n" || { [ -z "$k" ] || mkdir "./$n"; die os; }
  elif [ -n "$k" ]; then
    o=$(about "./$n") || die raced
    # The copy has its source's mode.
    PERM=
    keep
    over
  else fresh
  fi
  m=0
  say k
  if [ -n "$k" ]; then printf 1; else printf 0; fi
  [ "$sk" = d ] || tell
  release
}
"#;
