//! Shell functions for deletion of files and trees.

/// Removing what `walk e` found: `remove file EXPECTED`, `remove tree` or `remove empty`.
pub(crate) const REMOVE: &str = r#"remove() {
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
# The directories of a tree that have entries which may not be removed from them, some of them; each ends with a double slash,
# which is in no path.
fixed() {
  find "./$n" -type d -exec sh -c '
    for d do
      [ -w "$d" ] && [ -x "$d" ] || [ -z "$(find "$d/." ! -name . -prune -exec printf x \;)" ] || {
        printf "%s//" "$d"
        exit
      }
    done' sh {} + 2>/dev/null
}
# How many entries are in a tree, in parts: those that are no directories, and after a letter each those that are.
census() {
  find "./$c" \( -type d -exec sh -c 'printf "d%s " "$#"' sh {} + \) -o -exec sh -c 'printf "%s " "$#"' sh {} +
}
# Where paths are too long for the tools, the deep parts of what is removed are moved up first. What is left of a tree
# whose removal is interrupted stands where it stood.
prune() {
  [ -z "$2" ] || die linked
  x=$(fixed)
  [ -z "$x" ] || {
    say b
    printf '%s' "${x%%//*}"
    die fixed
  }
  c=.vfs-tmp-d-$ID
  mine
  trap '[ -e "./$n" ] || [ ! -e "./$c" ] || mv -f $mvt "./$c" "./$n"; tidy; exit 1' HUP INT TERM
  mv -f $mvt "./$n" "./$c" || die os
  release
  # A clean-up of abandoned files sees that this is not one.
  touch -c "./$c"
  i=0
  while :; do
    x=$(census 2>&1) && break
    i=$((i + 1))
    case $x in
    *"ame too long"*) flatten || break ;;
    *) break ;;
    esac
  done
  rm -rf "./$c"
  [ ! -e "./$c" ] || {
    say k
    printf '%s' "$x"
    say l
    census 2>/dev/null
    # What `find` comes to first has nothing left in it that could have been removed.
    say b
    x=$(find "./$c" -depth -exec sh -c 'printf "%s//" "$1"' sh {} + 2>/dev/null)
    printf '%s' "${x%%//*}"
    [ -e "./$n" ] || mv -f $mvt "./$c" "./$n"
    die os
  }
  say k
  printf '%s' "$x"
}
"#;
