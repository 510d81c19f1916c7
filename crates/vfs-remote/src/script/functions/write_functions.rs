//! Shell functions for writes: conditional replacement of a file.

/// Functions that write a file with the output of `body`, or with the content of `u` or `staged`: `put new`, `put
/// over`, `put if EXPECTED` or `put add MAX_OLD_SIZE`. The arguments of `put_at_once` may follow `put over ANYTHING`
/// and `put if EXPECTED`.
pub(crate) const PUT: &str = r#"target() {
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
take_staged() {
  has_size "$staged" "$staged_size" || die cut
  mv -f "$staged" "./$s" || die os
  back=$staged
  # Set the modification time to that of this commit.
  touch -c "./$s" || die os
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
    if [ -n "$staged" ]; then take_staged; else body >"./$s" || die os; fi
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
  report_change
  release
}
"#;
