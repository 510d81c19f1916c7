//! Shell functions that all changes share: locks, staged contents, steps made at once.

/// Functions that change an entry under its lock `t`, a file with the `ID` of its owner. `g` is the lock of another
/// entry, `s` the file that replaces the entry, `u` new content in the same directory, `staged` new content elsewhere,
/// `back` its path once it was moved to `s`, `b` the marker of a lock that is being broken, `a` a file for measuring
/// ages, and `y` the metadata of `s` before it replaced the entry.
///
/// A lock that is older than a minute has expired. Only one process at a time breaks it, after it has checked the age
/// again. As the owner may only have been slow, each change first checks that the process still owns its lock.
pub(crate) const CHANGE: &str = r#"t= g= s= u= a= b= y= staged= back=
owned() { IFS= read -r l <"$1" && [ "$l" = "$ID" ]; } 2>/dev/null
mine() { owned "./$t" || die raced; }
release() {
  [ -z "$t" ] || owned "./$t" || t=
  [ -z "$g" ] || owned "$g" || g=
  [ -z "$t$g$s$u" ] || rm -rf ${t:+"./$t"} ${g:+"$g"} ${s:+"./$s"} ${u:+"./$u"}
  t= g= s= u=
}
tidy() {
  set +C
  [ -z "$a$b" ] || rm -rf ${a:+"$a"} ${b:+"$b"}
  a= b=
  # Another script can use staged content that this one did not.
  [ -z "$back" ] || [ -z "${u:-$s}" ] || mv -f "./${u:-$s}" "$back" 2>/dev/null
  back=
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
# The apparent age of a new file is the lag of the file server's clock, which does not count as age.
outlive() {
  old "$1" 1 || return 0
  e=${1%/*}/.vfs-tmp-b${1##*/.vfs-tmp-r}
  a=${1%/*}/.vfs-tmp-u-$ID-age x=1
  printf '' >"$a" || return 0
  while old "$a" "$x"; do x=$((x * 2)); done
  # A new lock may appear up to that old, and must have its minute in addition.
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
      # If the lock was released before this check, `j` counts the attempt; only several in a row are a failure.
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
# Report under the lock, so that the reported version is the one that this change made.
report_change() {
  owned "./$t" || die outrun
  ! report_at_once || return 0
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

/// Functions that make several steps of a change in one process, if `find` can print metadata. `report_at_once` reports
/// the new version and releases the lock. `put_at_once MODE EXPECTED CHANGED TESTS` first replaces a file that matches
/// the tests, and has the mode and owner of new files, by `s`. The reported version has to be newer than the one
/// before; if it is not, the lock stays, and the remaining steps are made one by one.
pub(crate) const AT_ONCE: &str = r#"put_at_once() {
  # In `find -exec`, this text would stand for a path.
  case $n in *"{}"*) return 1 ;; esac
  c=$3
  shift 3
  mine
  # `find` looks up the files of `-samefile` before it moves any.
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
  '') o="||$c"; report_change ;;
  *'|' | *'|l')
    [ "$v" = "${v%l}" ] || t=
    say w
    say e
    printf '%s' "${v%l}" ;;
  *) die outrun ;;
  esac
  release
}
report_at_once() {
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

/// Variant of [`AT_ONCE`] for a `find` that cannot print metadata: all steps are made one by one.
pub(crate) const STEP_BY_STEP: &str = r#"put_at_once() { return 1; }
report_at_once() { return 1; }
"#;
