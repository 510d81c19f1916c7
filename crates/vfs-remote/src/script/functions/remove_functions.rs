//! Shell functions for deletion of files and trees.

/// Functions that remove the entry at the end of `walk e`: `remove file EXPECTED`, `remove tree EXPECTED` or `remove empty`.
pub(crate) const REMOVE: &str = r#"remove() {
  [ "$n" != . ] || die isdir
  look
  case $k$1 in
  '' | file | tree | empty) die missing ;;
  o*) die special ;;
  dfile) die isdir ;;
  dtree) [ -z "$2" ] || die linked ;;
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
    # The next file here must not have the times of the removed one.
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
# Prints some of the directories of a tree whose entries may not be removed, each followed by a double slash, which is in no path.
fixed() {
  find "./$n" -type d -exec sh -c '
    for d do
      [ -w "$d" ] && [ -x "$d" ] || [ -z "$(find "$d/." ! -name . -prune -exec printf x \;)" ] || {
        printf "%s//" "$d"
        exit
      }
    done' sh {} + 2>/dev/null
}
# Prints the numbers of entries in a tree, in parts: of directories after the letter d, and of other entries.
census() {
  find "./$c" \( -type d -exec sh -c 'printf "d%s " "$#"' sh {} + \) -o -exec sh -c 'printf "%s " "$#"' sh {} +
}
# If paths are too long for the tools, the deep parts of the tree are moved up first. If the removal is interrupted, the rest of
# the tree is moved back to its path.
prune() {
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
  # The new time shows to a clean-up that this tree is not abandoned.
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
    # The first entry of a depth-first walk is one that could not be removed.
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
