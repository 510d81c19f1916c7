//! Shell functions for rename and copy.

/// Functions that move and copy: `origin` after the walk to the source, then `move` or `copy` with `new` or `over`
/// after the walk to the target.
pub(crate) const TRANSFER: &str = r#"origin() {
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
    # The copy has the mode of its source.
    PERM=
    keep
    over
  else fresh
  fi
  m=0
  say k
  if [ -n "$k" ]; then printf 1; else printf 0; fi
  [ "$sk" = d ] || report_change
  release
}
"#;
